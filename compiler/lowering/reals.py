"""Numbers unknown at compile time: expressions of sizes, and items of tensors.

An attention's scale under dynamic shapes is a SymFloat: `s0 ** -0.5`. Loops compute it in float64
from the sizes, once before they begin; a call receives it from Python, as a symbol of the graph.
`x.item()` never leaves the graph's memory: loops read it in place. A call needs a Python number,
so it cannot take an item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from tcw.compiler.loops.expressions import Const, Expression, Load, Op, SizeOf, convert
from tcw.compiler.loops.sizes import Size
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.registry import Unsupported
from tcw.compiler.lowering.symbolic_sizes import Sizes
from tcw.compiler.lowering.tensors import Meta, Tensor

_BINARY = {
    "Pow": "pow",
    "FloatPow": "pow",
    "PowByNatural": "pow",
    "FloatTrueDiv": "div",
    "IntTrueDiv": "div",
}
_SAME = ("ToFloat", "Identity")
_UNARY = {f"OpaqueUnaryFn_{name}": name for name in ("sqrt", "exp", "log", "sin", "cos", "tanh")}


@dataclass(frozen=True, slots=True, eq=False)
class Real:
    """A float that depends only on sizes."""

    expression: Expression
    """In float64."""
    _sizes: Sizes
    _written: Any

    def symbol(self) -> Size:
        """The symbol that Python computes for it."""
        return self._sizes.named(self._written)


@dataclass(frozen=True, slots=True, eq=False)
class StoredNumber:
    """A number stored in a tensor."""

    tensor: Tensor
    """Zero-dimensional, float64 or int64."""


class Reals:
    """The unknown numbers of one graph."""

    def __init__(self, sizes: Sizes, builder: Builder) -> None:
        self._sizes = sizes
        self._builder = builder
        self._items: dict[Any, StoredNumber] = {}

    def item(self, value: Any, tensor: Tensor) -> StoredNumber:
        """The result of `tensor.item()`, which torch calls `value`."""
        dtype = "float64" if isinstance(value, torch.SymFloat) else "int64"
        element = self._builder.load(self._builder.reshape(tensor, ()), ())
        made = StoredNumber(self._builder.map(convert(element, dtype), Meta((), (), dtype)))
        self._items[value.node.expr] = made
        return made

    def of(self, value: Any) -> Real | StoredNumber:
        """A SymFloat. Raises `Unsupported` if it depends on tensor data that is not an item."""
        written = value.node.expr
        if written in self._items:
            return self._items[written]
        expression = _translated(self._sizes, written, self._items)
        if written.free_symbols.isdisjoint(self._items):
            return Real(expression, self._sizes, written)
        return StoredNumber(self._builder.map(expression, Meta((), (), "float64")))


def _translated(sizes: Sizes, written: Any, items: Mapping[Any, StoredNumber]) -> Expression:
    kind = type(written).__name__
    if isinstance(written, sympy.Number):
        return Const(float(written), "float64")
    if written in items:
        tensor = items[written].tensor
        return convert(Load(tensor.value, tensor.view, tensor.dtype), "float64")
    if kind in _SAME:
        return _translated(sizes, written.args[0], items)
    if getattr(written, "is_integer", None):
        size = sizes.translate(written)
        if isinstance(size, int):
            return Const(float(size), "float64")
        return convert(SizeOf(size), "float64")
    parts = [_translated(sizes, part, items) for part in written.args]
    if isinstance(written, (sympy.Add, sympy.Mul)):
        name = "add" if isinstance(written, sympy.Add) else "mul"
        total = parts[0]
        for part in parts[1:]:
            total = Op(name, (total, part), "float64")
        return total
    name = _BINARY.get(kind) or _UNARY.get(kind, "")
    if not name:
        raise Unsupported(f"{written} is a SymFloat")
    return Op(name, tuple(parts), "float64")
