"""Online softmax: the sum while the maximum is still being found, in one pass over a long row.

`m = max x` and `s = sum exp(x - m)` become m and `s = exp_sum x` (Milakov and Gimelshein, 2018).
Where only the sum propagates NaN, everything that needs the maximum must need the sum too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.expressions import Expression, Local, Op
from tcw.compiler.loops.nest import Let, Nest, Reduction, Write


def with_online_sums(
    facts: Facts, though_kept: Callable[[Reduction], bool], *, nan_in_both: bool = False
) -> Nest:
    """The nest with such sums replaced.

    `though_kept(maximum)`: whether a sum is replaced although its exponentials are used again.
    `nan_in_both`: the maximum that comes with the sum propagates NaN, too.
    """
    nest = facts.nest
    found: dict[str, Reduction] = {}
    gone: set[str] = set()
    for top in nest.statements:
        if isinstance(top, Reduction) and top.op == "max" and facts.is_main(top):
            for total, exponential in _sums(facts, top, though_kept, nan_in_both):
                found[total.name] = replace(total, op="exp_sum", expression=top.expression)
                if facts.uses[total.expression] == 1:
                    gone.add(exponential)
                break
    if not found:
        return nest
    statements = [found.get(s.name, s) if isinstance(s, Reduction) else s for s in nest.statements]
    kept = [s for s in statements if not (isinstance(s, Let) and s.name in gone)]
    return replace(nest, statements=tuple(kept))


def _sums(
    facts: Facts, top: Reduction, though_kept: Callable[[Reduction], bool], nan_in_both: bool
) -> Iterator[tuple[Reduction, str]]:
    """Sums of exp(x - max x), with the names of the exponentials; "" for one without a name."""
    for total in facts.nest.statements:
        if (
            isinstance(total, Reduction)
            and total.op == "sum"
            and total.over == top.over
            and total.axes == top.axes
            and compute_dtype(top.expression.dtype) == total.expression.dtype == "float32"
            and total.dtype == top.dtype == "float32"
        ):
            value = total.expression
            exponential = value.name if isinstance(value, Local) else ""
            alone = facts.uses[total.expression] == 1
            if (
                (alone or though_kept(top))
                and _is_shifted(facts, value, top)
                and (nan_in_both or _carried(facts, top, total))
            ):
                yield total, exponential


def _is_shifted(facts: Facts, value: Expression, top: Reduction) -> bool:
    """Whether a value is exp(x - max x)."""
    shifted = _value(facts, value)
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
