"""Changes of whole lines, as a fix makes them: unlike an edit, they may add and remove lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tcw.compiler.protocol.edits.edit import EditError
from tcw.compiler.protocol.edits.source_text import SourceText
from tcw.compiler.trace.records import SourceChange


def changed(text: str, changes: Sequence[SourceChange]) -> str:
    """The text with these changes of its own lines. Raises `EditError` if two overlap, a line does
    not exist, or the result is not Python."""
    lines = text.split("\n")
    returns = "\r" if lines[0].endswith("\r") else ""
    before = len(lines) + 1
    # from the last to the first, so that the numbers of the others stay true
    for change in sorted(dict.fromkeys(changes), key=_position, reverse=True):
        first, last = change.line - 1, change.end_line
        if not 0 <= first <= last <= len(lines):
            raise EditError(f"there is no line {change.end_line}")
        if last > before:
            raise EditError(f"two changes replace line {change.end_line}")
        before = first
        new = [line + returns for line in change.text.split("\n")] if change.text else []
        lines[first:last] = new
    result = "\n".join(lines)
    try:
        SourceText(result.replace("\r\n", "\n"))
    except EditError as error:
        raise EditError(f"the result is not valid Python: {error}") from error
    return result


def _position(change: SourceChange) -> tuple[int, int]:
    return change.line, change.end_line


def changes_by_file(changes: Iterable[SourceChange]) -> dict[str, list[SourceChange]]:
    """Absolute path of each changed file -> its changes."""
    found: dict[str, list[SourceChange]] = {}
    for change in changes:
        found.setdefault(os.path.abspath(change.file), []).append(change)
    return found
