"""The registry of lowerings of ATen operations.

An operation that `rewrites/decompositions.py` always decomposes needs none: it never gets here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from torch import fx

import tcw.compiler.lowering
from tcw.compiler.lowering.tensors import Tensor

Lowered = Tensor | tuple[Tensor | None, ...] | None
"""The results of the operation, with None for outputs without users."""
Lowering = Callable[..., Lowered]

LOWERINGS: dict[str, Lowering] = {}
"""`add.Tensor` -> its lowering. The family modules fill it when they are imported."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What an operation is estimated to cost either way, in nanoseconds for each result."""

    loops: float
    aten: float
    why: str
    """The properties of this case that the estimate follows from, in a sentence."""


Estimate = Callable[..., Worth | None]

_Kind = TypeVar("_Kind")

ESTIMATES: dict[str, Estimate] = {}
"""As `LOWERINGS`, for operations that ATen may compute faster than loops."""


class NoLowering(Exception):
    """This operation, with these arguments, is left to ATen. The message gives the reason.

    Raised before anything was added to the graph.
    """


class Unsupported(Exception):
    """The whole graph cannot be lowered and runs on ATen. The message gives the reason."""

    node: fx.Node | None = None
    """The operation at fault, if it is one."""


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register a lowering for operations of ATen or of another namespace, which prefixes the name.

    `add` means every overload of aten.add, `add.Tensor` one overload, `prims.iota` an operation of
    another namespace. The function is called as `lowering(builder, *args, **kwargs)` with the
    arguments of the FX node: tensors as `Tensor`, symbolic sizes as `Size`, all else unchanged.
    """

    def register(lowering: Lowering) -> Lowering:
        for name in names:
            if name in LOWERINGS:
                raise ValueError(f"{name} has two lowerings")
            LOWERINGS[name] = lowering
        return lowering

    return register


def estimates(*names: str) -> Callable[[Estimate], Estimate]:
    """Register an estimate for operations, named as for `lowers` and called with the same
    arguments. It returns None if an ATen call has no advantage."""

    def register(estimate: Estimate) -> Estimate:
        ESTIMATES.update(dict.fromkeys(names, estimate))
        return estimate

    return register


def lowering_of(target: Any) -> Lowering | None:
    """The lowering of an OpOverload, looked up by overload, then by packet."""
    return _found(LOWERINGS, target)


def estimate_of(target: Any) -> Estimate | None:
    """The estimate of an OpOverload, looked up by overload, then by packet."""
    return _found(ESTIMATES, target)


def _found(table: dict[str, _Kind], target: Any) -> _Kind | None:
    namespace, _, name = target._schema.name.partition("::")
    prefix = "" if namespace == "aten" else f"{namespace}."
    overload = target._schema.overload_name or "default"
    return table.get(f"{prefix}{name}.{overload}") or table.get(f"{prefix}{name}")


@cache
def load_families() -> None:
    """Import all modules of this package, which registers their lowerings."""
    for module in pkgutil.iter_modules(tcw.compiler.lowering.__path__):
        importlib.import_module(f"tcw.compiler.lowering.{module.name}")
