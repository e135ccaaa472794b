"""Values that may be computed in fewer instructions because of what uses them.

Propagating NaN takes three instructions instead of one on a maximum's dependency chain. If the
maximum is used only in exp(x - max), as in a softmax, and every such exponential is summed, the sum
propagates NaN. 1 + erf(x), as in GELU, loses erf's last bits where erf is small, so its absolute
error counts and not its relative one. 1 + exp(x), as in SiLU, loses all of exp where it is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.dtypes import FLOATS
from tcw.compiler.loops.expressions import Const, Expression, Local, Op, walk
from tcw.compiler.loops.nest import Let, Reduction, Write, expressions

_EXP = frozenset({"float32", "float64"})
"""The dtypes in which exp has quick forms."""
ADDED_TO_ONE = {"erf": {"float32"}, "exp": _EXP}
"""The functions with a quick form for 1 + f(x), and its dtypes."""


def quick_max(facts: Facts, statement: Reduction) -> bool:
    """Whether every use of a maximum of x is exp(x - max), and each such exponential is summed over
    the same axes."""
    if statement.op != "max" or statement.expression.dtype not in FLOATS:
        return False
    shifted, differences = _below(facts, statement)
    exponentials: set[str] = set()
    summed: set[str] = set()
    for other in facts.nest.statements:
        expression = other.expression
        read = {part.name for part in walk(expression) if isinstance(part, Local)}
        if isinstance(other, Let) and other.name in differences:
            continue
        if isinstance(other, Let) and _is_exponential(expression, shifted, differences):
            exponentials.add(other.name)
        elif statement.name in read or read & differences:
            return False
        elif read & exponentials and isinstance(other, Reduction):
            same = other.op == "sum" and set(other.over) == set(statement.over)
            if same and isinstance(expression, Local):
                summed.add(expression.name)
        if isinstance(other, Write) and any(
            isinstance(part, Local) and part.name in differences | {statement.name}
            for term in other.terms
            for part in walk(term.index)
        ):
            return False
    return bool(exponentials) and exponentials <= summed


def quick_functions(facts: Facts) -> dict[Expression, str]:
    """Operators of a nest and the quick functions that compute them: exp and erf of 1 + f(x), and
    the exp of x - max(x), which is not above 0."""
    return {
        **dict.fromkeys(_below_maxima(facts), "exp_nonpositive"),
        **{part: f"{part.name}_quick" for part in _added_to_one(facts)},
    }


def _below(facts: Facts, maximum: Reduction) -> tuple[tuple[Expression, ...], frozenset[str]]:
    """The operands of x - max(x), and the values of a nest that are it."""
    shifted = (maximum.expression, Local(maximum.name, maximum.dtype))
    return shifted, frozenset(
        other.name
        for other in facts.nest.statements
        if isinstance(other, Let) and _is_difference(other.expression, shifted)
    )


def _below_maxima(facts: Facts) -> Iterator[Op]:
    for statement in facts.nest.statements:
        if not isinstance(statement, Reduction) or statement.op != "max":
            continue
        shifted, differences = _below(facts, statement)
        for part in facts.uses:
            if _is_exponential(part, shifted, differences) and part.dtype in _EXP:
                yield part


def _added_to_one(facts: Facts) -> set[Op]:
    """The exp(x), and the erf(x) of float32, of a nest that are used in 1 + f(x) only."""
    uses = {
        part
        for part in facts.uses
        if isinstance(part, Op) and part.dtype in ADDED_TO_ONE.get(part.name, ())
    }
    if not uses:
        return uses
    elsewhere: set[Expression] = set()
    for statement in reversed(facts.nest.statements):
        whole = statement.expression
        if not isinstance(statement, Let) or Local(statement.name, statement.dtype) in elsewhere:
            elsewhere.add(whole)
        for part in expressions(statement):
            if isinstance(part, Op) and not (part.name == "add" and any(map(_is_one, part.args))):
                elsewhere.update(part.args)
    return uses - elsewhere


def _is_one(expression: Expression) -> bool:
    return isinstance(expression, Const) and expression.number == 1


def _is_difference(expression: Expression, args: tuple[Expression, ...]) -> bool:
    return isinstance(expression, Op) and expression.name == "sub" and expression.args == args


def _is_exponential(
    expression: Expression, shifted: tuple[Expression, ...], differences: frozenset[str]
) -> TypeGuard[Op]:
    if not isinstance(expression, Op) or expression.name != "exp":
        return False
    (argument,) = expression.args
    if isinstance(argument, Local):
        return argument.name in differences
    return _is_difference(argument, shifted)
