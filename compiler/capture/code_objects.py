"""Code objects in the user's terms: resume functions get their original's name and location."""

from __future__ import annotations

import linecache
from types import CodeType
from typing import Any

from torch._dynamo.resume_execution import ContinueExecutionCache

from tcw.compiler.trace import function_names
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import Location


def resumes_at(code: CodeType) -> int | None:
    """The line at which a resume function continues, from its name; None for other code."""
    return function_names.resumes_at(code.co_name)


def original_code(code: CodeType) -> CodeType:
    """The user's code that a resume function was made from; other code is returned unchanged."""
    for _ in range(64):
        known = ContinueExecutionCache.generated_code_metadata.get(code)
        if known is None:
            break
        code = known.code
    return code


def last_line(code: CodeType) -> int:
    """The last line of any instruction of a function, inner functions included."""
    last = code.co_firstlineno
    for _, end_line, _, _ in code.co_positions():
        if end_line is not None and end_line > last:
            last = end_line
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            last = max(last, last_line(constant))
    return last


def function_location(code: CodeType) -> Location:
    """The lines of the user's function, first to last."""
    code = original_code(code)
    return Location(
        file=code.co_filename,
        line=code.co_firstlineno,
        end_line=last_line(code),
        function=user_name(code.co_name),
    )


def instruction_location(code: CodeType, positions: Any, line: int | None) -> Location:
    """The location of an instruction of `code`; `line` is the fallback if it has no positions."""
    found = getattr(positions, "lineno", None)
    if found is None:
        found = line if line is not None and line > 0 else code.co_firstlineno
    return Location(
        file=code.co_filename,
        line=found,
        end_line=getattr(positions, "end_lineno", None),
        column=getattr(positions, "col_offset", None),
        end_column=getattr(positions, "end_col_offset", None),
        function=user_name(code.co_name),
    )


def source_line(location: Location) -> str:
    """The source line with its indent, so that columns match; "" if it cannot be read."""
    return linecache.getline(location.file, location.line).rstrip("\r\n")


def source_lines(location: Location) -> tuple[str, ...]:
    """Up to 40 lines from a location on: enough for the block that starts there."""
    lines = linecache.getlines(location.file)
    return tuple(line.rstrip("\r\n") for line in lines[location.line - 1 :][:40])
