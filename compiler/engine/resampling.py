"""The gradient of a resampling stays ATen's operation.

torch decomposes `upsample_*` before autograd, into reads at indices, whose gradient is as many
additions at those indices. ATen's own gradient goes through the image once: on a CPU, large bicubic
and trilinear images take a tenth of the time. So while a graph is traced, torch's decompositions
before autograd are put aside; the forward is decomposed after it (`decompositions.py`).

Source: torch/_decomp/decompositions.py, `py_impl(DispatchKey.Autograd)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from compiler.control.hooks import Hook, lacking

RESAMPLING = tuple(
    getattr(torch.ops.aten, name)
    for name in (
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "_upsample_nearest_exact1d",
        "_upsample_nearest_exact2d",
        "_upsample_nearest_exact3d",
        "upsample_linear1d",
        "upsample_bilinear2d",
        "upsample_trilinear3d",
        "upsample_bicubic2d",
    )
)
_BEFORE_AUTOGRAD = (
    torch._C.DispatchKey.Autograd,
    torch._C.DispatchKey.CompositeImplicitAutograd,
)


def missing() -> str:
    """Why torch's decompositions cannot be put aside; "" if they can."""
    for operation in _overloads():
        for name in ("py_kernels", "_dispatch_cache"):
            if not isinstance(getattr(operation, name, None), dict):
                return str(lacking(f"{operation} has no {name}"))
    return ""


HOOK = Hook(
    name="resampling gradients",
    offers="gradients of resampling as ATen's operation, not as additions at indices",
    needs=(),
    further=missing,
    test="engine/test_resampling.py",
)


@contextmanager
def resampling_whole(inputs: Sequence[Any]) -> Iterator[None]:
    """Trace resampling as single operations inside, if all tensors of `inputs` are on a CPU."""
    if missing() or any(isinstance(x, torch.Tensor) and x.device.type != "cpu" for x in inputs):
        yield
        return
    aside = [
        (operation, key, operation.py_kernels.pop(key))
        for operation in _overloads()
        for key in _BEFORE_AUTOGRAD
        if key in operation.py_kernels
    ]
    try:
        _forget_dispatch()
        yield
    finally:
        for operation, key, kernel in aside:
            operation.py_kernels[key] = kernel
        _forget_dispatch()


def _forget_dispatch() -> None:
    for operation in _overloads():
        operation._dispatch_cache.clear()


def _overloads() -> Iterator[Any]:
    for packet in RESAMPLING:
        for overload in ("default", "vec"):
            yield getattr(packet, overload)
