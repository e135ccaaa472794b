"""Inductor's loop bodies as textbook loop nests.

Inductor prints a loop body as calls on `ops` with named intermediate values and index expressions
by name (`torch/_inductor/loop_body.py`, `LoopBody.debug_str`). Here the intermediates are put where
they are read and an index that only walks a contiguous buffer becomes its loop variables.
What cannot be read this way is shown as it was printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_RANGES = re.compile(r"^var_ranges = \{(.*)\}$")
_INDEX = re.compile(r"^(index\d+) = (.*)$")
_ASSIGN = re.compile(r"^\s+(\w+) = (.*)$")
_CALL = re.compile(r"^ops\.(\w+)\((.*)\)$", re.DOTALL)
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=",
    "logical_and": "and", "logical_or": "or", "bitwise_and": "&", "bitwise_or": "|",
}  # fmt: skip
_REDUCE = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min=", "any": "or=", "xor_sum": "^="}
_LOOSE = {"+", "-", "and", "or", "==", "!=", "<", ">", "<=", ">=", "&", "|"}
LONG = 44
"""An expression longer than this that is read twice keeps a name."""


@dataclass(frozen=True)
class LoopNest:
    """`ranges`: (variable, size) outermost first; `body`: statements."""

    ranges: tuple[tuple[str, str], ...]
    body: tuple[str, ...]


@lru_cache(maxsize=2048)
def read_loops(printed: str) -> LoopNest | None:
    """The loop nest that `printed` describes; None where it reads otherwise."""
    ranges: list[tuple[str, str]] = []
    indices: dict[str, str] = {}
    calls: list[tuple[str, str]] = []
    body = False
    for line in printed.split("\n"):
        if match := _RANGES.match(line):
            pairs = [part.split(":") for part in match[1].split(", ") if ":" in part]
            ranges = [(name.strip(), size.strip()) for name, size in pairs]
        elif match := _INDEX.match(line):
            indices[match[1]] = match[2]
        elif line.startswith("def body"):
            body = True
        elif body and (match := _ASSIGN.match(line)):
            calls.append((match[1], match[2]))
    if not body or not calls:
        return None
    try:
        statements = _statements(calls, indices, ranges)
    except (ValueError, KeyError, IndexError):
        return None
    return LoopNest(tuple(ranges), tuple(statements))


def _statements(
    calls: list[tuple[str, str]], indices: dict[str, str], ranges: list[tuple[str, str]]
) -> list[str]:
    values: dict[str, str] = {}
    seen: dict[str, str] = {}
    statements: list[str] = []
    for name, call in calls:
        found = re.match(r"self\.get_index\('(\w+)'\)$", call)
        if found:
            values[name] = subscript(indices[found[1]], ranges)
            continue
        match = _CALL.match(call)
        if match is None:
            raise ValueError(call)
        operation, arguments = match[1], _split(match[2])
        if operation == "store":
            buffer, index, value = arguments[0].strip("'"), values[arguments[1]], arguments[2]
            add = "+=" if len(arguments) > 3 and "atomic_add" in arguments[3] else "="
            statements.append(f"{buffer}{index} {add} {_outer(values[value])}")
        elif operation == "store_reduction":
            buffer, index = arguments[0].strip("'"), values[arguments[1]]
            statements.append(f"{buffer}{index} {values[arguments[2]]}")
        elif operation == "reduction":
            kind, value = arguments[2].strip("'"), values[arguments[3]]
            values[name] = f"{_REDUCE.get(kind, kind + '=')} {_outer(value)}"
        else:
            expression = _expression(operation, arguments, values)
            short = seen.get(expression)
            if short is None and len(expression) > LONG:
                short = _letter(len(seen))
                statements.append(f"{short} = {_outer(expression)}")
                seen[expression] = short
            values[name] = short or expression
    return statements


def _letter(count: int) -> str:
    return "tuvwabcdefgh"[count] if count < 12 else f"t{count}"


def _expression(operation: str, arguments: list[str], values: dict[str, str]) -> str:
    read = [values.get(argument, argument) for argument in arguments]
    if operation == "load":
        return arguments[0].strip("'") + read[1]
    if operation == "constant":
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
        if not size.isdigit():
            break
        stride *= int(size)
    if sorted(terms) == sorted(index.split(" + ")):
        return "[" + ", ".join(name for name, _ in used) + "]"
    return f"[{index}]"


def _split(arguments: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    current = ""
    for character in arguments:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()] if current.strip() else parts
