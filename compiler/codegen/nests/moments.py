"""Mean and variance in one pass over a long row.

`s = sum x` and `q = sum (x - s / n)^2` become s and `q = deviations x`, which the accumulator of x
itself yields (Welford 1962; partial results combine as in Chan, Golub and LeVeque, 1983).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.expressions import Const, Expression, Local, Op, SizeOf
from tcw.compiler.loops.nest import Let, Nest, Reduction
from tcw.compiler.loops.sizes import Size

WIDE = ("float32", "float64")


def with_moments(
    facts: Facts, chosen: Callable[[Reduction], bool]
) -> tuple[Nest, dict[str, Expression]]:
    """The nest with such sums of squares replaced, and the mean that each was relative to.

    `chosen(sum)`: whether its rows are to be read once.
    """
    nest = facts.nest
    found: dict[str, Reduction] = {}
    means: dict[str, Expression] = {}
    for total in nest.statements:
        if not isinstance(total, Reduction) or total.op != "sum" or total.dtype not in WIDE:
            continue
        if total.dtype != total.expression.dtype or not chosen(total):
            continue
        for squares in nest.statements:
            mean = _mean_of(facts, squares, total)
            if isinstance(squares, Reduction) and mean is not None:
                found[squares.name] = replace(squares, op="deviations", expression=total.expression)
                means[squares.name] = mean
    if not found:
        return nest, means
    statements = [found.get(s.name, s) if isinstance(s, Reduction) else s for s in nest.statements]
    return replace(nest, statements=tuple(statements)), means


def partner(deviations: Reduction, others: list[Reduction]) -> Reduction | None:
    """The sum over the same elements."""
    for other in others:
        if other.op == "sum" and other.expression == deviations.expression:
            return other
    return None


def _mean_of(facts: Facts, squares: object, total: Reduction) -> Expression | None:
    """The mean, if a statement sums the squared distances of the elements of `total` from it."""
    if (
        not isinstance(squares, Reduction)
        or squares.op != "sum"
        or squares.dtype != total.dtype
        or squares.expression.dtype != total.dtype
        or (squares.over, squares.axes) != (total.over, total.axes)
    ):
        return None
    square = _value(facts, squares.expression)
    if not isinstance(square, Op) or square.name != "mul" or square.args[0] != square.args[1]:
        return None
    difference = _value(facts, square.args[0])
    if not isinstance(difference, Op) or difference.name != "sub":
        return None
    element, centre = difference.args
    if _value(facts, element) != _value(facts, total.expression):
        return None
    mean = _value(facts, centre)
    count = facts.nest.size(total.over)
    return mean if _is_mean(mean, total, count) else None


def _is_mean(mean: Expression, total: Reduction, count: Size) -> bool:
    if not isinstance(mean, Op) or len(mean.args) != 2:
        return False
    first, second = mean.args
    if first != Local(total.name, total.dtype):
        return False
    if mean.name == "div":
        if isinstance(second, Op) and second.name == "convert":
            (second,) = second.args
        if isinstance(second, SizeOf):
            return second.size == count
        return isinstance(second, Const) and second.number == count
    if mean.name != "mul" or not isinstance(count, int) or not isinstance(second, Const):
        return False
    return abs(float(second.number) * count - 1) < 1e-6


def _value(facts: Facts, expression: Expression) -> Expression:
    """The expression that a name stands for, if it is computed element by element."""
    while isinstance(expression, Local):
        statement = facts.named[expression.name]
        if not isinstance(statement, Let) or statement.dtype != statement.expression.dtype:
            break
        expression = statement.expression
    return expression
