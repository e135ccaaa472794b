"""Positions that are only compared or converted, in 32 bits where they fit.

An int64 in a register halves the vectors of a nest. A causal mask, a diagonal and a triangle
compare positions in a tensor's dimensions, which are small.
"""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.codegen.nests.facts import Facts, range_of
from tcw.compiler.loops.expressions import Const, Expression, Op, Position
from tcw.compiler.loops.nest import Axis, Nest

SHORT = "int32"
LIMIT = 1 << 31
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})

Range = tuple[int, int]
"""The least and the greatest value of an expression."""


def with_short_positions(nest: Nest) -> Nest:
    """The nest with positions in 32 bits where they are compared or converted."""
    facts = Facts(nest)
    statements = tuple(
        statement if new is statement.expression else replace(statement, expression=new)
        for statement in nest.statements
        for new in (_visit(statement.expression, facts),)
    )
    changed = any(a is not b for a, b in zip(statements, nest.statements, strict=True))
    return replace(nest, statements=statements) if changed else nest


def _visit(expression: Expression, facts: Facts) -> Expression:
    if not isinstance(expression, Op):
        return expression
    if expression.name in COMPARISONS or expression.name == "convert":
        axes = facts.nest.axes
        moves = not all(isinstance(argument, Const) for argument in expression.args)
        ranges = [_range(argument, axes) for argument in expression.args]
        if moves and None not in ranges:
            return replace(expression, args=tuple(map(_short, expression.args)))
        if expression.name in COMPARISONS and len(ranges) - ranges.count(None) == 1:
            clamped = _with_clamped(expression.args, ranges, facts)
            if clamped is not None:
                return replace(expression, args=clamped)
    args = tuple(_visit(argument, facts) for argument in expression.args)
    if all(new is old for new, old in zip(args, expression.args, strict=True)):
        return expression
    return replace(expression, args=args)


def _with_clamped(
    args: tuple[Expression, ...], ranges: list[Range | None], facts: Facts
) -> tuple[Expression, ...] | None:
    """The operands of a comparison of a position with an int64 that is the same along the innermost
    axis, as the class of a row in a loss is; None for others.

    Clamped to the numbers beside the position's, the int64 compares the same, and fits.
    """
    place = 1 if ranges[1] is None else 0
    other, bounds = args[place], ranges[1 - place]
    innermost = len(facts.nest.axes) - 1
    fits = bounds is not None and bounds[0] > -LIMIT and bounds[1] + 1 < LIMIT
    moves = innermost in facts.axes(args[1 - place]) - facts.axes(other)
    if bounds is None or not fits or not moves or other.dtype != "int64":
        return None
    low, high = (Const(number, "int64") for number in (bounds[0] - 1, bounds[1] + 1))
    clamped = Op("minimum", (Op("maximum", (other, low), "int64"), high), "int64")
    short: list[Expression] = [_short(args[1 - place]), Op("convert", (clamped,), SHORT)]
    return tuple(reversed(short)) if place == 0 else tuple(short)


def _short(expression: Expression) -> Expression:
    if isinstance(expression, Op):
        return Op(expression.name, tuple(map(_short, expression.args)), SHORT)
    assert isinstance(expression, (Const, Position))
    return replace(expression, dtype=SHORT)


def _range(expression: Expression, axes: tuple[Axis, ...]) -> Range | None:
    """The range of an int64 that is made of positions and numbers, if it and all its parts fit in
    32 bits; None for any other expression."""
    if expression.dtype != "int64":
        return None
    found: Range | None = None
    if isinstance(expression, Const):
        found = int(expression.number), int(expression.number)
    elif isinstance(expression, Position):
        found = range_of(expression, axes)
    elif isinstance(expression, Op):
        ranges = [_range(argument, axes) for argument in expression.args]
        known = [one for one in ranges if one is not None]
        found = _combined(expression.name, known) if len(known) == len(ranges) else None
    return found if found is not None and -LIMIT <= found[0] <= found[1] < LIMIT else None


def _combined(name: str, ranges: list[Range]) -> Range | None:
    match name, ranges:
        case "neg", [(low, high)]:
            return -high, -low
        case "add", [(a, b), (c, d)]:
            return a + c, b + d
        case "sub", [(a, b), (c, d)]:
            return a - d, b - c
        case "mul", [(a, b), (c, d)]:
            ends = (a * c, a * d, b * c, b * d)
            return min(ends), max(ends)
        case "minimum", [(a, b), (c, d)]:
            return min(a, c), min(b, d)
        case "maximum", [(a, b), (c, d)]:
            return max(a, c), max(b, d)
    return None
