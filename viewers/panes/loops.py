"""Loop nests of scheduler nodes as a textbook writes them.

A nest in a trace (`LoopLine`) has an operation a line, with a name for each intermediate value.
Here the intermediates are put where they are read, and an index that only walks a contiguous buffer
becomes its loop variables. What cannot be written this way stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import LoopLine
from tcw.viewers.words import indent

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=",
    "logical_and": "and", "logical_or": "or", "bitwise_and": "&", "bitwise_or": "|",
}  # fmt: skip
_REDUCE = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min=", "any": "or=", "xor_sum": "^="}
_PARTS = ("mean", "m2", "weight")
"""What Welford's reduction returns: the mean, the sum of squared differences from it, the count."""
_LOOSE = {"+", "-", "and", "or", "==", "!=", "<", ">", "<=", ">=", "&", "|"}
LONG = 44
"""An expression longer than this that is read twice keeps a name."""


@dataclass(frozen=True)
class TextbookNest:
    """`ranges`: (variable, size) outermost first; `body`: statements."""

    ranges: tuple[tuple[str, str], ...]
    body: tuple[str, ...]


@lru_cache(maxsize=2048)
def textbook_nest(nest: tuple[LoopLine, ...]) -> TextbookNest | None:
    """The nest of one node; None if it reads otherwise (masked subblocks)."""
    ranges = tuple((line.variable, str(line.size)) for line in nest if line.variable)
    try:
        statements = _statements([line for line in nest if not line.variable], ranges)
    except (ValueError, KeyError, IndexError):
        return None
    return (
        TextbookNest(ranges, tuple(statement.text for statement in statements))
        if statements
        else None
    )


@dataclass(frozen=True)
class TextbookStatement:
    """A statement, and the buffer that it writes; "" if it writes none."""

    text: str
    writes: str = ""


@dataclass(frozen=True)
class TextbookLine:
    """A line of several nests in one: a loop's head, or a statement."""

    depth: int
    loop: tuple[str, str] = ("", "")
    """(variable, size); ("", "") for a statement."""
    statement: TextbookStatement = TextbookStatement("")


@lru_cache(maxsize=256)
def textbook_lines(nest: tuple[LoopLine, ...]) -> tuple[TextbookLine, ...]:
    """Loops within loops, several in a row: a nest of several nodes. Statements that read otherwise
    (masked subblocks) stay as they are printed."""
    reader = _Reader()
    for line in nest:
        reader.leave(line.depth)
        if line.variable:
            reader.enter(line.variable, str(line.size))
        else:
            reader.pending.append(line)
    reader.close()
    return tuple(reader.lines)


class _Reader:
    """Reads a nest from the top."""

    def __init__(self) -> None:
        self.lines: list[TextbookLine] = []
        self.pending: list[LoopLine] = []
        """Operations of the innermost loop that are not read yet."""
        self._open: list[tuple[str, str]] = []
        """(variable, size) of each loop around them."""
        self._values: dict[str, str] = {}
        self._names: list[dict[str, str]] = [{}]
        """Expressions with a name: outside all loops, then by loop."""

    def enter(self, name: str, size: str) -> None:
        self.close()
        self.lines.append(TextbookLine(len(self._open), loop=(name, size)))
        self._open.append((name, size))
        self._names.append({})

    def leave(self, depth: int) -> None:
        """Close the loops that a line of this depth is not in."""
        while len(self._open) > depth:
            self.close()
            self._open.pop()
            self._names.pop()

    def close(self) -> None:
        """Read the pending operations."""
        values = dict(self._values)
        names = {expression: name for scope in self._names for expression, name in scope.items()}
        known = len(names)
        around = len(self._open)
        try:
            statements = _statements(self.pending, self._open, values, names)
        except (ValueError, KeyError, IndexError):
            statements = [
                TextbookStatement(indent(line.depth - around) + line.text) for line in self.pending
            ]
        else:
            self._values = values
            self._names[-1].update(list(names.items())[known:])
        self.lines += [TextbookLine(around, statement=statement) for statement in statements]
        self.pending.clear()


def _statements(
    operations: Sequence[LoopLine],
    ranges: Sequence[tuple[str, str]],
    values: dict[str, str] | None = None,
    names: dict[str, str] | None = None,
) -> list[TextbookStatement]:
    """`values` and `names`: of the statements before, in loops around these. Raises ValueError,
    KeyError or IndexError for an operation that it does not know."""
    values = {} if values is None else values
    names = {} if names is None else names
    statements: list[TextbookStatement] = []
    for line in operations:
        name, operation, arguments = line.result, line.operation, line.arguments
        if operation in ("subblock", "return", ""):
            raise ValueError(operation)
        if operation in ("store", "store_reduction"):
            place = arguments[0] + subscript(arguments[1], ranges)
            value = values[arguments[2]]
            if operation == "store":
                sign = "+=" if "atomic_add" in arguments[3:] else "="
                value = f"{sign} {_outer(value)}"
            statements.append(TextbookStatement(f"{place} {value}", arguments[0]))
        elif operation == "reduction":
            kind, value = arguments[2], values.get(arguments[3], arguments[3])
            values[name] = f"{_REDUCE.get(kind, kind + '=')} {_outer(value)}"
        elif operation == "getitem":
            _, sign, value = values[arguments[0]].partition("= ")
            part = _PARTS[int(arguments[1])] if sign else ""
            values[name] = f"{part}= {value}" if sign else f"{arguments[0]}[{arguments[1]}]"
        elif operation == "load":
            values[name] = arguments[0] + subscript(arguments[1], ranges)
        else:
            expression = _expression(operation, arguments, values)
            short = names.get(expression)
            if short is None and len(expression) > LONG:
                short = names[expression] = _letter(len(names))
                statements.append(TextbookStatement(f"{short} = {_outer(expression)}"))
            values[name] = short or expression
    return statements


def _letter(count: int) -> str:
    return "tuvwabcdefgh"[count] if count < 12 else f"t{count}"


def _expression(operation: str, arguments: Sequence[str], values: dict[str, str]) -> str:
    read = [values.get(argument, argument) for argument in arguments]
    if operation in ("constant", "index_expr"):
        return arguments[0]
    if operation in _BINARY and len(read) == 2:
        sign = _BINARY[operation]
        if sign == "*" and read[1] in ("1.0", "1"):
            return read[0]
        both = f"{read[0]} {sign} {read[1]}"
        return f"({both})" if sign in _LOOSE else both
    if operation in ("logical_not", "neg"):
        return ("not " if operation == "logical_not" else "-") + read[0]
    if operation == "to_dtype":
        return f"{read[1].removeprefix('torch.')}({_outer(read[0])})"
    if operation == "square":
        return f"{read[0]}²"
    return f"{operation}({', '.join(_outer(one) for one in read)})"


def _outer(expression: str) -> str:
    """Without the parentheses that enclose all of it."""
    if not (expression.startswith("(") and expression.endswith(")")):
        return expression
    depth = 0
    for index, character in enumerate(expression):
        depth += (character == "(") - (character == ")")
        if depth == 0 and index < len(expression) - 1:
            return expression
    return expression[1:-1]


def subscript(index: str, ranges: Sequence[tuple[str, str]]) -> str:
    """`128*p0 + p1` over p0 < 4096, p1 < 128 -> `[p0, p1]`; else the expression."""
    used = [(name, size) for name, size in ranges if re.search(rf"\b{re.escape(name)}\b", index)]
    stride = 1
    terms: list[str] = []
    for name, size in reversed(used):
        terms.append(name if stride == 1 else f"{stride}*{name}")
        count = refs.digits(size)
        if count is None:
            break
        stride *= count
    if sorted(terms) == sorted(index.split(" + ")):
        return "[" + ", ".join(name for name, _ in used) + "]"
    return f"[{index}]"
