"""Inductor's loop bodies as textbook loop nests.

A trace has a loop body as `compiler/inductor/loops.py` prints it: its loops, then one operation of
torch's `LoopBody` a line, with a name for each intermediate value. Here the intermediates are put
where they are read, and an index that only walks a contiguous buffer becomes its loop variables.
What cannot be read this way is shown as it was printed.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import lru_cache

from compiler.trace import refs
from compiler.trace.commas import at_commas

_LOOP = re.compile(r"^ *(?:for|reduce) (\w+) in (.+):$")
_LINE = re.compile(r"^ *(?:(\w+) = )?(?:<built-in function )?(\w+)>?\((.*)\)$")
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=",
    "logical_and": "and", "logical_or": "or", "bitwise_and": "&", "bitwise_or": "|",
}  # fmt: skip
_REDUCE = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min=", "any": "or=", "xor_sum": "^="}
_PARTS = ("mean", "m2", "weight")
"""What Welford's reduction gives: the mean, the sum of squared differences from it, the count."""
_LOOSE = {"+", "-", "and", "or", "==", "!=", "<", ">", "<=", ">=", "&", "|"}
LONG = 44
"""An expression longer than this that is read twice keeps a name."""


@dataclass(frozen=True)
class TextbookNest:
    """`ranges`: (variable, size) outermost first; `body`: statements."""

    ranges: tuple[tuple[str, str], ...]
    body: tuple[str, ...]


@lru_cache(maxsize=2048)
def read_loops(printed: str) -> TextbookNest | None:
    """The loop nest that `printed` describes; None if it reads otherwise (masked subblocks)."""
    ranges: list[tuple[str, str]] = []
    lines: list[str] = []
    for line in printed.rstrip("\n").split("\n"):
        if match := _LOOP.match(line):
            ranges.append((match[1], match[2]))
        else:
            lines.append(line)
    try:
        statements = _statements([_call(line) for line in lines], ranges)
    except (ValueError, KeyError, IndexError):
        return None
    return TextbookNest(tuple(ranges), tuple(statements)) if statements else None


@dataclass(frozen=True)
class Line:
    """A line of several nests in one: a loop's head, or a statement."""

    depth: int
    loop: tuple[str, str] = ("", "")
    """(variable, size); ("", "") for a statement."""
    statement: str = ""


@lru_cache(maxsize=256)
def read_nested(printed: str) -> tuple[Line, ...] | None:
    """Loops within loops, several in a row: a nest of several nodes. Statements that read otherwise
    (masked subblocks) stay as they were printed; None if all do."""
    reader = _Reader()
    for line in printed.rstrip("\n").split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        reader.leave(indent)
        if match := _LOOP.match(line):
            reader.enter(indent, match[1], match[2])
        else:
            reader.pending.append(line)
    reader.close()
    return tuple(reader.lines) if reader.understood else None


class _Reader:
    """Reads a nest from the top."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.understood = False
        self.pending: list[str] = []
        """Statements of the innermost loop that are not read yet."""
        self._open: list[tuple[int, str, str]] = []
        """(indentation, variable, size) of each loop around them."""
        self._values: dict[str, str] = {}
        self._names: list[dict[str, str]] = [{}]
        """Expressions with a name: outside of all loops, then by loop."""

    def enter(self, indent: int, name: str, size: str) -> None:
        self.close()
        self.lines.append(Line(len(self._open), loop=(name, size)))
        self._open.append((indent, name, size))
        self._names.append({})

    def leave(self, indent: int) -> None:
        """Close the loops that a line with this indentation is not in."""
        while self._open and indent <= self._open[-1][0]:
            self.close()
            self._open.pop()
            self._names.pop()

    def close(self) -> None:
        """Read the pending statements."""
        ranges = [(name, size) for _, name, size in self._open]
        values = dict(self._values)
        names = {expression: name for scope in self._names for expression, name in scope.items()}
        known = len(names)
        try:
            statements = _statements([_call(line) for line in self.pending], ranges, values, names)
        except (ValueError, KeyError, IndexError):
            statements = textwrap.dedent("\n".join(self.pending)).split("\n")
        else:
            self.understood = self.understood or bool(statements)
            self._values = values
            self._names[-1].update(list(names.items())[known:])
        self.lines += [Line(len(self._open), statement=statement) for statement in statements]
        self.pending.clear()


def _call(line: str) -> tuple[str, str, list[str]]:
    """(name of the result or "", operation, arguments)."""
    match = _LINE.match(line)
    if match is None:
        raise ValueError(line)
    return (match[1] or "", match[2], at_commas(match[3]))


def _statements(
    calls: list[tuple[str, str, list[str]]],
    ranges: list[tuple[str, str]],
    values: dict[str, str] | None = None,
    names: dict[str, str] | None = None,
) -> list[str]:
    """`values` and `names`: of the statements before, in loops around these."""
    values = {} if values is None else values
    names = {} if names is None else names
    statements: list[str] = []
    for name, operation, arguments in calls:
        if operation == "store":
            place = arguments[0] + subscript(arguments[1], ranges)
            sign = "+=" if "atomic_add" in arguments[3:] else "="
            statements.append(f"{place} {sign} {_outer(values[arguments[2]])}")
        elif operation == "store_reduction":
            place = arguments[0] + subscript(arguments[1], ranges)
            statements.append(f"{place} {values[arguments[2]]}")
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
                statements.append(f"{short} = {_outer(expression)}")
            values[name] = short or expression
    return statements


def _letter(count: int) -> str:
    return "tuvwabcdefgh"[count] if count < 12 else f"t{count}"


def _expression(operation: str, arguments: list[str], values: dict[str, str]) -> str:
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


def subscript(index: str, ranges: list[tuple[str, str]]) -> str:
    """`128*p0 + p1` over p0 < 4096, p1 < 128 -> `[p0, p1]`; anything else stays an expression."""
    used = [(name, size) for name, size in ranges if re.search(rf"\b{name}\b", index)]
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
