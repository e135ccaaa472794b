"""Code objects as users know them: resume functions are named and placed like their originals."""

from __future__ import annotations

import linecache
import re
from types import CodeType
from typing import Any

from torch._dynamo.resume_execution import ContinueExecutionCache

from compiler.trace.records import Location

_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)$")


def user_name(name: str) -> str:
    """`torch_dynamo_resume_in_forward_at_26` -> `forward`."""
    while match := _RESUME.match(name):
        name = match["function"]
    return name


def resumes_at(code: CodeType) -> int | None:
    """The line at which a resume function goes on, as torch names it; None for other code."""
    match = _RESUME.match(code.co_name)
    return int(match["line"]) if match else None


def original(code: CodeType) -> CodeType:
    """The user's code that a resume function was made from; other code is its own original."""
    for _ in range(64):
        known = ContinueExecutionCache.generated_code_metadata.get(code)
        if known is None:
            break
        code = known.code
    return code


def last_line(code: CodeType) -> int:
    """The last line that any instruction of a function or of its inner functions comes from."""
    last = code.co_firstlineno
    for _, end_line, _, _ in code.co_positions():
        if end_line is not None and end_line > last:
            last = end_line
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            last = max(last, last_line(constant))
    return last


def function_location(code: CodeType) -> Location:
    """First line of the user's function, to its last."""
    code = original(code)
    return Location(
        file=code.co_filename,
        line=code.co_firstlineno,
        end_line=last_line(code),
        function=user_name(code.co_name),
    )


def instruction_location(code: CodeType, positions: Any, line: int | None = None) -> Location:
    """Where an instruction of `code` stands; `line` serves where it has no positions."""
    found = getattr(positions, "lineno", None)
    if found is None:
        return Location(
            file=code.co_filename,
            line=line if line is not None and line > 0 else code.co_firstlineno,
            function=user_name(code.co_name),
        )
    return Location(
        file=code.co_filename,
        line=found,
        end_line=positions.end_lineno,
        column=positions.col_offset,
        end_column=positions.end_col_offset,
        function=user_name(code.co_name),
    )


def source_line(location: Location) -> str:
    """The line itself with its indent, so that columns hold; "" where it cannot be read."""
    return linecache.getline(location.file, location.line).rstrip("\r\n")


def source_lines(location: Location, most: int = 40) -> tuple[str, ...]:
    """The lines from a location on, as far as the block that starts there may reach."""
    lines = linecache.getlines(location.file)
    return tuple(line.rstrip("\r\n") for line in lines[location.line - 1 :][:most])
