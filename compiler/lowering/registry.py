"""Which function lowers which ATen operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.lowering.tensors import Tensor

Lowered = Tensor | tuple[Tensor | None, ...] | None
"""What a lowering answers: like the operation, with None for an output that nobody has."""
Lowering = Callable[..., Lowered]

LOWERINGS: dict[str, Lowering] = {}
"""`add.Tensor` -> its lowering; filled by the modules of the families when they are imported."""


class NoLowering(Exception):
    """This operation, with these arguments, is better left to ATen; the message says why.

    Raised before anything was added to the graph.
    """


class Unsupported(Exception):
    """The graph as a whole cannot be lowered and runs as ATen calls; the message says why."""


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register a lowering for operations of ATen or, with its name in front, another namespace.

    `add` stands for every overload of aten.add, `add.Tensor` for one, `prims.iota` for one of
    another namespace. The function is called as `lowering(builder, *args, **kwargs)` with the
    arguments of the FX node: tensors as `Tensor`, symbolic sizes as `Size`, all else as it stands.
    """

    def register(lowering: Lowering) -> Lowering:
        for name in names:
            if name in LOWERINGS:
                raise ValueError(f"{name} has two lowerings")
            LOWERINGS[name] = lowering
        return lowering

    return register


def lowering_of(target: Any) -> Lowering | None:
    """The lowering of an OpOverload, by overload first, then by packet."""
    namespace, _, name = target._schema.name.partition("::")
    prefix = "" if namespace == "aten" else f"{namespace}."
    overload = target._schema.overload_name or "default"
    return LOWERINGS.get(f"{prefix}{name}.{overload}") or LOWERINGS.get(f"{prefix}{name}")
