"""Symbolic floats of an ATen graph: torch's SymFloats become expressions of sizes in float64.

An attention's scale under dynamic shapes is one: `s0 ** -0.5`. Loops compute it from the sizes,
once before they begin; a call gets it from Python, as a symbol of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from compiler.loops.expressions import Const, Expression, Op, SizeOf, convert
from compiler.loops.sizes import Size
from compiler.lowering.registry import Unsupported
from compiler.lowering.sizes import Sizes

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
    """A float that the sizes decide."""

    expression: Expression
    """Of float64."""
    _sizes: Sizes
    _written: Any

    def symbol(self) -> Size:
        """The symbol under which Python computes it."""
        return self._sizes.named(self._written)


def real(sizes: Sizes, value: Any) -> Real:
    """A SymFloat. Raises `Unsupported` where it depends on what is in a tensor."""
    written = value.node.expr
    return Real(_translated(sizes, written), sizes, written)


def _translated(sizes: Sizes, written: Any) -> Expression:
    kind = type(written).__name__
    if isinstance(written, sympy.Number):
        return Const(float(written), "float64")
    if kind in _SAME:
        return _translated(sizes, written.args[0])
    if getattr(written, "is_integer", None):
        size = sizes.translate(written)
        if isinstance(size, int):
            return Const(float(size), "float64")
        return convert(SizeOf(size), "float64")
    parts = [_translated(sizes, part) for part in written.args]
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
