"""The user's own call of the compiled function: what a program passes, and where."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from tcw.compiler.capture.advice.user_source import UserSource, user_source
from tcw.compiler.graphs.lines import is_own_file, is_users_own, outside_torch
from tcw.compiler.trace.records import Location


@dataclass(frozen=True)
class UsersCall:
    """A call in the user's source, with the expression that it passes for each parameter."""

    source: UserSource
    location: Location
    passed: Mapping[str, ast.expr]


def users_line(start: FrameType | None, root: str) -> Location | None:
    """The innermost line of the user's own that runs."""
    frame = start
    while frame is not None:
        code = frame.f_code
        if is_users_own(code.co_filename, root):
            return _place(frame)
        frame = frame.f_back
    return None


def users_call(
    start: FrameType | None, root: str, code: CodeType, f_locals: Mapping[str, Any]
) -> UsersCall | None:
    """The call of the function with this code and these locals; None if a library makes it, or the
    source does not say."""
    frame = start
    while frame is not None and not _may_be_the_caller(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not is_users_own(frame.f_code.co_filename, root):
        return None
    place = _place(frame)
    source = user_source(place.file)
    call = _call_at(source, place) if source is not None else None
    if source is None or call is None:
        return None
    return UsersCall(source, place, _passed(call, code, f_locals, frame.f_locals))


def _may_be_the_caller(file: str) -> bool:
    return outside_torch(file) and not is_own_file(file)


def _place(frame: FrameType) -> Location:
    code, line = frame.f_code, frame.f_lineno
    positions = list(code.co_positions())
    at = positions[frame.f_lasti // 2] if 0 <= frame.f_lasti // 2 < len(positions) else None
    if at is None or at[0] is None:
        return Location(file=code.co_filename, line=line, end_line=line, function=code.co_name)
    return Location(
        file=code.co_filename, line=at[0], end_line=at[1], column=at[2], end_column=at[3],
        function=code.co_name,
    )  # fmt: skip


def _call_at(source: UserSource, place: Location) -> ast.Call | None:
    wanted = (place.line, place.end_line, place.column, place.end_column)
    for call in source.all(ast.Call):
        if (call.lineno, call.end_lineno, call.col_offset, call.end_col_offset) == wanted:
            return call
    return None


def _passed(
    call: ast.Call, code: CodeType, f_locals: Mapping[str, Any], callers: Mapping[str, Any]
) -> dict[str, ast.expr]:
    """The expression for each parameter. One that is a name has to be the very object."""
    names = list(code.co_varnames[: code.co_argcount])
    if names[:1] == ["self"]:
        names = names[1:]
    found: dict[str, ast.expr] = {}
    for name, argument in zip(names, call.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        found[name] = argument
    found |= {one.arg: one.value for one in call.keywords if one.arg}
    return {
        name: argument
        for name, argument in found.items()
        if not isinstance(argument, ast.Name)
        or argument.id not in callers
        or callers[argument.id] is f_locals.get(name)
    }
