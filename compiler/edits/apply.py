"""Applies edits to a text."""

from __future__ import annotations

from collections.abc import Iterable

from tcw.compiler.edits.edit import Edit, EditError
from tcw.compiler.edits.kinds import KINDS
from tcw.compiler.edits.text import Replacement, SourceText

BOM = "\ufeff"


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits applied: the same number of lines, each with its own line ending;
    lines without an edit are unchanged.

    Raises `EditError` if an edit cannot be applied, or if two edits overlap.
    """
    mark = BOM if text.startswith(BOM) else ""
    ended = text.removeprefix(BOM).split("\n")
    whole = "\n".join([*(line.removesuffix("\r") for line in ended[:-1]), ended[-1]])
    if "\r" in whole:
        raise EditError("the file has carriage returns inside lines")
    source = SourceText(whole)
    changes: list[Replacement] = []
    for edit in dict.fromkeys(edits):
        kind = KINDS.get(edit.kind)
        if kind is None:
            raise EditError(f"{edit}: no edit {edit.kind!r}; the kinds are {', '.join(KINDS)}")
        try:
            made = kind(source, edit.line)
        except EditError as error:
            raise EditError(f"{edit}: {error}") from error
        if any(_overlap(one, other) for one in made for other in changes):
            raise EditError(f"{edit}: another edit changes the same place")
        changes += made
    result = source.changed(changes)
    try:
        SourceText(result)
    except EditError as error:
        raise EditError(f"the result is not valid Python: {error}") from error
    lines = result.split("\n")
    returns = ["\r" if line.endswith("\r") else "" for line in ended]
    return mark + "\n".join(map("".join, zip(lines, returns, strict=True)))


def _overlap(one: Replacement, other: Replacement) -> bool:
    a, b = one.span, other.span
    start = max((a.line, a.column), (b.line, b.column))
    end = min((a.end_line, a.end_column), (b.end_line, b.end_column))
    return start < end or (a.line, a.column) == (b.line, b.column)
