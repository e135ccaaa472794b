"""Reads that see zero beyond a border, of a value that is cheaper to compute than to keep.

`f(x)` inside a border of zeros is `f` of x inside a border of zeros if f(0) = 0, or of negative
zeros if f(-0) = 0. Then x is read where f(x) would have been, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import copysign

from tcw.compiler.fusion.weights import CHEAP
from tcw.compiler.loops.dtypes import BYTES, FLOATS
from tcw.compiler.loops.expressions import Const, Expression, Gather, Load, Op, rewrite


def cheap(found: Expression, read: Gather, work: int) -> bool:
    """Whether an element that an index picks is cheaper to compute there than to keep.

    `found` is the element in terms of memory, and takes `work` instructions.
    """
    leaves = set(_leaves(found))
    if work > CHEAP or not all(isinstance(leaf, Gather) for leaf in leaves):
        return False
    return sum(BYTES[leaf.dtype] for leaf in leaves) <= BYTES[read.dtype]


def _leaves(expression: Expression) -> Iterator[Gather | Load]:
    """The elements that an expression reads, without the indices at which it reads them."""
    if isinstance(expression, Op):
        for argument in expression.args:
            yield from _leaves(argument)
    elif isinstance(expression, (Gather, Load)):
        yield expression


def surrounded(found: Expression, read: Gather) -> Expression | None:
    """What a read with a border sees, of which `found` is the element inside; None if zeros do not
    stay zeros."""
    if read.otherwise != 0 or copysign(1, read.otherwise) < 0:
        return None
    if any(term.checked for term in read.terms):
        return None
    for border in (0.0, -0.0):
        value = _with_zeros(found, border)
        if value == 0 and copysign(1, value) > 0:
            return rewrite(found, partial(_bordered, border=border))
    return None


def _bordered(part: Expression, border: float) -> Expression:
    return replace(part, otherwise=border) if isinstance(part, Gather) else part


def _with_zeros(expression: Expression, zero: float) -> float:
    """The value of an expression of floats whose reads are all this zero; NaN if it is unknown."""
    unknown = float("nan")
    if isinstance(expression, Gather):
        return zero if expression.dtype in FLOATS else unknown
    if isinstance(expression, Const):
        return float(expression.number)
    if not isinstance(expression, Op) or expression.dtype not in FLOATS:
        return unknown
    args = [_with_zeros(argument, zero) for argument in expression.args]
    match expression.name, args:
        case (("convert" | "rounded"), [x]):
            return x if x == 0 else unknown
        case "neg", [x]:
            return -x
        case "mul", [x, y]:
            return x * y
        case "div", [x, y] if y != 0:
            return x / y
        case "add", [x, y]:
            return x + y
        case "sub", [x, y]:
            return x - y
    return unknown
