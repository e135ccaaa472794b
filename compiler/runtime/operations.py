"""ATen operations by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

PLAIN = {
    "aten.mm.default": "mm",
    "aten.bmm.default": "bmm",
    "aten.addmm.default": "addmm",
    "aten.baddbmm.default": "baddbmm",
    "aten.convolution.default": "convolution",
}
"""Operations that torch offers under the same arguments as a function of its own: the same call,
without the search for an overload, 0.5 to 1.5 µs less of it."""


class UnknownOperation(Exception):
    """This process has no operation of that name: a custom one must be registered before."""


def operation(name: str) -> Callable[..., Any]:
    """What `aten.mm.default` calls. Raises `UnknownOperation`."""
    plain = PLAIN.get(name)
    if plain is not None and hasattr(torch, plain):
        return getattr(torch, plain)  # type: ignore[no-any-return]
    namespace, _, rest = name.partition(".")
    packet, _, overload = rest.rpartition(".")
    try:
        found = getattr(getattr(torch.ops, namespace), packet)
        return getattr(found, overload) if overload else found  # type: ignore[no-any-return]
    except AttributeError as error:
        raise UnknownOperation(f"there is no operation {name}: {error}") from error
