"""What a resumed frame finds on the stack, in the user's words.

torch calls these values `___stack0`, `___stack1`, …, from the bottom. The topmost is the result of
the broken expression; below it may be the function that was about to be called with it.
"""

from __future__ import annotations

import ast
import re

from tcw.compiler.trace.records import FailedGuard, FrameStart, GraphBreak, Guards
from tcw.viewers.recording import Recording
from tcw.viewers.summary.breaks import resumed_after
from tcw.viewers.syntax import statements

ON_STACK = re.compile(r"^___stack(?P<index>\d+)\b")
_SOURCE = re.compile(r"L\['___stack(\d+)'\]")
_LONGEST = 60


class StackNames:
    """Names for the values on the stack of resumed frames."""

    def __init__(self, recording: Recording) -> None:
        lines = {start.compile_id: start.resumes_at for start in recording.all(FrameStart)}
        self._after = {
            resumed: broken
            for resumed, broken in resumed_after(recording).items()
            if broken.location.line == lines[resumed]
        }
        self._tops: dict[str, int] = {}
        for record in recording.all(Guards):
            sources = " ".join(guard.source for guard in record.guards)
            found = [int(index) for index in _SOURCE.findall(sources)]
            if found:
                self._tops[record.compile_id] = max(found)

    def named(self, name: str, entry: str) -> str:
        """`___stack0` of a frame that resumes after `x.max().item()` is that expression; other
        names, and values whose expression is not known, are unchanged."""
        match = ON_STACK.match(name)
        broken = self._after.get(entry)
        if match is None or broken is None:
            return name
        index, top = int(match["index"]), self._tops.get(entry, 0)
        expression = _broken(broken)
        if index < top:
            expression = _callee(broken) if top == 1 else ""
        return expression + name[match.end() :] if expression else name


def on_stack(failed: FailedGuard) -> bool:
    """Whether the guard was on a value that a graph break left on the stack."""
    return _SOURCE.match(failed.source) is not None


def _broken(broken: GraphBreak) -> str:
    """The expression that broke the graph; "" if it is long or spans several lines."""
    place = broken.location
    if place.column is None or place.end_column is None or place.end_line != place.line:
        return ""
    part = broken.source_line.encode()[place.column : place.end_column]
    return part.decode(errors="replace") if len(part) <= _LONGEST else ""


def _callee(broken: GraphBreak) -> str:
    """`items.append` of `items.append(float(x))`, where `float(x)` broke the graph; "" if the
    expression is not an argument of a call."""
    line, place = broken.source_line, broken.location
    indent = len(line.encode()) - len(line.encode().lstrip())
    for call in ast.walk(statements(line.strip())):
        for argument in call.args if isinstance(call, ast.Call) else ():
            columns = (argument.col_offset + indent, (argument.end_col_offset or 0) + indent)
            if isinstance(call, ast.Call) and columns == (place.column, place.end_column):
                callee = ast.unparse(call.func)
                return callee if len(callee) <= _LONGEST else ""
    return ""
