"""Online softmax: the sum while the maximum is still being found, in one pass over a long row.

`m = max x` and `s = sum exp(x - m)` become m and `s = exp_sum x`. Each chain of accumulators of the
sum has a top, equal in all lanes, above everything seen so far. If a vector contains a greater
element, which is rare, the top is raised and the sum rescaled (Milakov and Gimelshein, 2018). Only
the sum propagates NaN, so everything that needs the maximum must need the sum too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compiler.codegen.cpp.nests.facts import Facts
from compiler.codegen.cpp.nests.schedule import Schedule
from compiler.loops.dtypes import REDUCED, compute_dtype
from compiler.loops.expressions import Expression, Local, Op, Read, ReadIndexed
from compiler.loops.nest import Let, Nest, Reduction, Write, expressions

LONG = 1 << 11
"""Row length from which the rare rescaling costs less than a second pass."""
FAR = 1 << 18
"""The same if the exponentials are recomputed instead of kept: at this length neither their buffer
nor the row fits in a near cache. With 16-bit floats, keeping them is faster at any length."""


def online(facts: Facts, schedule: Schedule) -> Nest:
    """The nest with such sums replaced, if its rows are long."""
    nest, lane = facts.nest, schedule.lane
    if lane is None or schedule.lanes == 1 or schedule.inner or schedule.tile is not None:
        return nest
    size = nest.axes[lane].size
    if facts.reduced != {lane} or not isinstance(size, int) or size < LONG:
        return nest
    found: dict[str, Reduction] = {}
    gone: set[str] = set()
    for top in nest.statements:
        if isinstance(top, Reduction) and top.op == "max" and facts.is_main(top):
            for total, exponential in _sums(facts, top):
                found[total.name] = replace(total, op="exp_sum", expression=top.expression)
                if facts.uses[total.expression] == 1:
                    gone.add(exponential)
                break
    if not found:
        return nest
    statements = [found.get(s.name, s) if isinstance(s, Reduction) else s for s in nest.statements]
    kept = [s for s in statements if not (isinstance(s, Let) and s.name in gone)]
    return replace(nest, statements=tuple(kept))


def _sums(facts: Facts, top: Reduction) -> Iterator[tuple[Reduction, str]]:
    """Sums of exp(x - max x), with the names of the exponentials."""
    for total in facts.nest.statements:
        if (
            isinstance(total, Reduction)
            and total.op == "sum"
            and total.over == top.over
            and total.axes == top.axes
            and isinstance(total.expression, Local)
            and compute_dtype(top.expression.dtype) == total.expression.dtype == "float32"
            and total.dtype == top.dtype == "float32"
        ):
            exponential = total.expression.name
            alone = facts.uses[total.expression] == 1
            if (
                (alone or _is_far(facts, top))
                and _is_shifted(facts, exponential, top)
                and _carried(facts, top, total)
            ):
                yield total, exponential


def _is_far(facts: Facts, top: Reduction) -> bool:
    size = facts.nest.axes[top.over[0]].size
    narrow = any(
        isinstance(part, (Read, ReadIndexed)) and part.dtype in REDUCED
        for statement in facts.nest.statements
        for part in expressions(statement)
    )
    return isinstance(size, int) and size >= FAR and not narrow


def _is_shifted(facts: Facts, name: str, top: Reduction) -> bool:
    """Whether a value is exp(x - max x)."""
    shifted = _value(facts, Local(name, "float32"))
    if not isinstance(shifted, Op) or shifted.name != "exp":
        return False
    difference = _value(facts, shifted.args[0])
    if not isinstance(difference, Op) or difference.name != "sub":
        return False
    return difference.args == (top.expression, Local(top.name, top.dtype))


def _value(facts: Facts, expression: Expression) -> Expression:
    """The expression that a name stands for, if it is computed element by element."""
    if isinstance(expression, Local):
        statement = facts.named[expression.name]
        if isinstance(statement, Let):
            return statement.expression
    return expression


def _carried(facts: Facts, top: Reduction, total: Reduction) -> bool:
    """Whether everything stored or reduced from the maximum also depends on the sum."""
    behind: dict[str, set[str]] = {}
    for statement in facts.nest.statements:
        names = facts.locals_in(statement)
        reached = {name for one in names for name in (one, *behind.get(one, ()))}
        if statement is not total and not isinstance(statement, Let):
            if top.name in reached and total.name not in reached:
                return False
            if isinstance(statement, Write) and any(
                facts.axes(term.index) and top.name in reached for term in statement.terms
            ):
                return False
        if not isinstance(statement, Write):
            behind[statement.name] = reached
    return True


def has_online_sum(facts: Facts, maximum: Reduction) -> bool:
    """Whether an online sum relative to this maximum exists, which propagates NaN."""
    return maximum.op == "max" and any(
        isinstance(s, Reduction) and s.op == "exp_sum" and s.expression == maximum.expression
        for s in facts.nest.statements
    )
