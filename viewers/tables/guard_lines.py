"""Guards: what each is on, what it requires and the line that caused it; the others by kind."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tcw.compiler.trace.records import Guard
from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.cells import keep_end, pad
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.plain import plain
from tcw.viewers.summary.guard_groups import Condition, KindGroup, condition_value
from tcw.viewers.words import seconds_text

PLACE = (14, 30)
"""Least and most cells for a line's place; a longer one is cut at its start."""
LEAST = 16
"""Minimum width of values, in cells, next to long names."""

GuardRow = tuple[str, str, Guard]
"""A name, what it has to be, and the guard that requires it."""


def condition_rows(conditions: Sequence[Condition]) -> list[GuardRow]:
    """A name that several conditions in a row have is given once."""
    before = ["", *(condition.name for condition in conditions)]
    return [
        ("" if condition.name == last else condition.name, condition.value, condition.guards[0])
        for condition, last in zip(conditions, before, strict=False)
    ]


def single_rows(guards: Sequence[Guard]) -> list[GuardRow]:
    """Each guard of a condition or of a kind."""
    return [
        (guard.name or guard.source or "global state", condition_value(guard) or "unchanged", guard)
        for guard in guards
    ]


def guards_lines(
    rows: Sequence[GuardRow], names: FileNames, width: int, indent: int, main: str = ""
) -> list[list[TextLine]]:
    """The lines of each guard: name, value and place in columns. Names and values wrap, and are
    never cut. `main`: the file whose name is left out of the places."""
    if not rows:
        return []
    room = width - indent - 4
    whole = [_place(guard, names, main) for _, _, guard in rows]
    least, most = (min(size, max(map(cell_len, whole))) for size in PLACE)
    name_cells = min(max(cell_len(plain(name)) for name, _, _ in rows), room - least - LEAST)
    widest = max(cell_len(plain(value)) for _, value, _ in rows)
    last = max(least, min(most, room - name_cells - widest))
    places = [
        one if cell_len(one) <= last else keep_end(one.rpartition("/")[2], last) for one in whole
    ]
    values = min(widest, room - name_cells - max(map(cell_len, places)))
    found = []
    for (name, value, _), place in zip(rows, places, strict=True):
        name, lines = plain(name), []
        if cell_len(name) > name_cells:
            lines.append(line(" " * indent, name, hang=indent + 2))
            name = ""
        shown = pad(plain(value), values) if place else plain(value)
        start = " " * indent + pad(name, name_cells) + "  "
        body = line(start, (shown, "accent"), "  ", (place, "dim"), hang=cell_len(start))
        found.append([*lines, body])
    return found


def kinds_lines(groups: Sequence[KindGroup], width: int, indent: int) -> list[TextLine]:
    """A line for each kind: how many, what they require, and the name of one of them."""
    rows: list[list[Cell]] = []
    for group in groups:
        words = group.words or "no description"
        example = f"  {group.example}" if group.example else ""
        rows.append([(str(len(group.guards)), "strong"), (group.kind, "dim"), words + example])
    return table(rows, "rff", width, indent)


def check_words(microseconds: float) -> str:
    """`19.3 µs per check (cold)`: of all guards, as torch measures it: once, with the CPU's caches
    flushed, so that the check of a call takes less."""
    seconds = f"{microseconds:.1f} µs" if microseconds < 100 else seconds_text(microseconds / 1e6)
    return f"{seconds} per check (cold)"


def _place(guard: Guard, names: FileNames, main: str) -> str:
    """`block.py:17`; `:17` in the main file."""
    place = guard.location
    if place is None:
        return ""
    return f":{place.line}" if place.file == main else plain(names.place(place.file, place.line))
