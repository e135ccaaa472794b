"""A text with edits made, and what they changed as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from compiler.edits.edit import Edit, EditError
from compiler.edits.kinds import KINDS
from compiler.edits.text import Change, Text


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; as many lines, and those without an edit as they were.

    Raises `EditError` where one cannot be made, or where two meet in one place.
    """
    whole = text.replace("\r\n", "\n")
    if "\r" in whole:
        raise EditError("the file has carriage returns that end no line")
    source = Text(whole)
    changes: list[Change] = []
    for edit in dict.fromkeys(edits):
        kind = KINDS.get(edit.kind)
        if kind is None:
            raise EditError(f"{edit}: there is no edit {edit.kind!r}, but {', '.join(KINDS)}")
        try:
            made = kind(source, edit.line)
        except EditError as error:
            raise EditError(f"{edit}: {error}") from error
        if any(_overlap(one, other) for one in made for other in changes):
            raise EditError(f"{edit}: another edit changes the same place")
        changes += made
    result = source.changed(changes)
    try:
        Text(result)
    except EditError as error:
        raise EditError(f"what it leaves is no Python: {error}") from error
    return result.replace("\n", "\r\n") if "\r\n" in text else result


def _overlap(one: Change, other: Change) -> bool:
    a, b = one.span, other.span
    start = max((a.line, a.column), (b.line, b.column))
    end = min((a.end_line, a.end_column), (b.end_line, b.end_column))
    return start < end or (a.line, a.column) == (b.line, b.column)


def diff(name: str, before: str, after: str) -> str:
    """What `git apply` and `patch -p1` take; "" where nothing changed. `name` is the file's path
    from the folder it is applied in."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{name}",
        f"b/{name}",
    )
    ended = []
    for line in lines:
        ended.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(ended)
