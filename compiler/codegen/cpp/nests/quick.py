"""A maximum that need not propagate NaN, as in a softmax.

Propagating NaN takes three instructions instead of one on a maximum's dependency chain. If the
maximum is used only in exp(x - max), and every such exponential is summed, the sum propagates NaN.
"""

from __future__ import annotations

from compiler.codegen.nests.facts import Facts
from compiler.loops.dtypes import FLOATS
from compiler.loops.expressions import Expression, Local, Op, walk
from compiler.loops.nest import Let, Reduction, Write


def quick_max(facts: Facts, statement: Reduction) -> bool:
    """Whether every use of a maximum of x is exp(x - max), and each such exponential is summed over
    the same axes."""
    if statement.op != "max" or statement.expression.dtype not in FLOATS:
        return False
    shifted = (statement.expression, Local(statement.name, statement.dtype))
    differences: set[str] = set()
    exponentials: set[str] = set()
    summed: set[str] = set()
    for other in facts.nest.statements:
        expression = other.expression
        read = {part.name for part in walk(expression) if isinstance(part, Local)}
        if isinstance(other, Let) and _is(expression, "sub", shifted):
            differences.add(other.name)
        elif isinstance(other, Let) and _is_exponential(expression, shifted, differences):
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


def _is(expression: Expression, name: str, args: tuple[Expression, ...]) -> bool:
    return isinstance(expression, Op) and expression.name == name and expression.args == args


def _is_exponential(
    expression: Expression, shifted: tuple[Expression, ...], differences: set[str]
) -> bool:
    if not isinstance(expression, Op) or expression.name != "exp":
        return False
    (argument,) = expression.args
    if isinstance(argument, Local):
        return argument.name in differences
    return _is(argument, "sub", shifted)
