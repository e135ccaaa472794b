"""Index expressions of recorded loops: how far apart the elements of neighbouring iterations are.

They are sums and products of loop variables as torch and our engine print them, with `//`, `%`,
`FloorDiv` and `ModularIndexing` where a view splits or joins dimensions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

_INDEX = re.compile(r"(?!.*\b\d+[A-Za-z_])[\w +*/%(),-]{1,300}", re.ASCII)
"""What is parsed: short enough for its depth. A number that runs into a word makes Python warn."""
_LARGEST = 1 << 80


def step_along(index: str, variable: str, variables: Sequence[str]) -> int | None:
    """Elements from one iteration of a loop to the next, the other loops being at their start; None
    if that is not the same each time, or not known."""
    values = []
    for place in range(4):
        at = dict.fromkeys(variables, 0) | {variable: place}
        value = _value(_parsed(index), at)
        if value is None:
            return None
        values.append(value)
    steps = {two - one for one, two in pairwise(values)}
    return steps.pop() if len(steps) == 1 else None


def at_place(expression: str, at: Mapping[str, int]) -> int | str:
    """The value of an index expression for these loop variables; the text itself of anything
    else."""
    value = _value(_parsed(expression), at)
    return expression if value is None else value


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr | None:
    if not _INDEX.fullmatch(text):
        return None
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr | None, at: Mapping[str, int]) -> int | None:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return at.get(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _value(operand, at)
            return None if value is None else -value
        case ast.BinOp(left=left, op=operator, right=right):
            return _combined(operator, _value(left, at), _value(right, at))
        case ast.Call(func=ast.Name(id="FloorDiv"), args=[left, right]):
            return _combined(ast.FloorDiv(), _value(left, at), _value(right, at))
        case ast.Call(func=ast.Name(id="ModularIndexing"), args=[base, divisor, modulus]):
            quotient = _combined(ast.FloorDiv(), _value(base, at), _value(divisor, at))
            return _combined(ast.Mod(), quotient, _value(modulus, at))
    return None


def _combined(operator: ast.operator, left: int | None, right: int | None) -> int | None:
    if left is None or right is None or max(abs(left), abs(right)) > _LARGEST:
        return None
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
        case ast.Mod() if right:
            return left % right
    return None
