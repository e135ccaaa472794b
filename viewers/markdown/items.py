"""A finding or a cause as a numbered item (cost, line, fix), an effect as an item of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tcw.compiler.trace.records import Advice
from tcw.viewers.file_names import FileNames
from tcw.viewers.markdown.comment import code, escaped, fenced
from tcw.viewers.summary.differences.difference_words import effect_words
from tcw.viewers.summary.differences.effects import Effect
from tcw.viewers.summary.findings import Finding
from tcw.viewers.summary.fixes import is_command, words
from tcw.viewers.summary.place import Place
from tcw.viewers.tables.findings import window
from tcw.viewers.words import plural

WIDTH = 100
"""Columns of a source line."""
_CODE_ROWS = 20
"""Rows of a fix."""


class Item(Protocol):
    """As `tcw.viewers.summary.Finding` and `tcw.viewers.summary.profile.Cause`."""

    @property
    def cost(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def place(self) -> Place | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def fixes(self) -> tuple[Advice, ...]: ...


def item(number: int, one: Item, names: FileNames, more: Sequence[str] = ()) -> list[str]:
    """One item of a numbered list, with the best fix. `more`: further Markdown at its end."""
    start = f"{number}. "
    notes = f"; {escaped(', '.join(one.notes))}" if one.notes else ""
    body = [f"{item_title(one, names)}{notes}"]
    if one.place is not None and one.place.text.strip():
        shown, first, last = window(one.place, WIDTH)
        carets = first is not None and last is not None and last > first
        rows = [shown, " " * first + "^" * (last - first)] if carets else [shown]  # type: ignore[operator]
        body += fenced(rows, "python")
    fix = one.fix if isinstance(one, Finding) else None
    if fix is not None:
        body += fix_rows(fix.advice, f"Fix ✓ ({escaped(words(fix))})")
    else:
        for advice in one.fixes[:1]:
            body += fix_rows(advice)
    body += more
    return [start + body[0], *(" " * len(start) + row if row else "" for row in body[1:]), ""]


def item_title(one: Item, names: FileNames) -> str:
    """Its cost, what it is, and where."""
    where = f" at {code(names.place(one.place.file, one.place.line))}" if one.place else ""
    return f"**{escaped(one.cost)}**: {escaped(one.title)}{where}"


def fix_rows(advice: Advice, label: str = "") -> list[str]:
    """`label`: of a fix that was tried; other advice is an idea."""
    by = label or ("torch says" if advice.by != "tcw" else "Look" if is_command(advice) else "Idea")
    rows = [row for row in advice.code.splitlines() if row.strip()]
    if not rows:
        return [f"{by}: {escaped(advice.text)}"]
    more = [f"# … {plural(len(rows) - _CODE_ROWS, 'line')} more"]
    shown = rows[:_CODE_ROWS] + (more if len(rows) > _CODE_ROWS else [])
    return [f"{by}:", *fenced(shown, "python"), *([escaped(advice.text)] if advice.text else [])]


def effect_items(effects: Sequence[Effect], most: int, shown: str = "") -> list[str]:
    """`shown`: a cause that was given above."""
    items = []
    for effect in effects[:most]:
        place = f"{code(effect.place)} " if effect.place else ""
        because = f" — because {code(effect.cause)}" if effect.cause not in ("", shown) else ""
        items.append(f"- {place}{escaped(effect_words(effect))}{because}")
    if len(effects) > most:
        items.append(f"- {plural(len(effects) - most, 'effect')} more")
    return items
