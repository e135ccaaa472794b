"""`--show guards`: the conditions under which each compiled frame can be reused.

First those that a caller can change, one by one; then the others, one line per kind.
`--show guards=all` lists each of those too.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from compiler.trace.records import DynamicSize, Guard, Guards
from viewers.kit.cells import keep_end
from viewers.kit.lines import BLANK, TextLine, line
from viewers.kit.table import Cell, heading, table
from viewers.plain import plain
from viewers.summary.guards import Condition, GuardGroups, condition_value, guard_groups
from viewers.text.sections import SectionView
from viewers.words import plural, seconds_text

PLACE = (14, 30)
"""Least and most cells for a line's place; a longer one is cut at its start."""
LEAST = 16
"""Cells that values keep, however long the names."""


def section(view: SectionView) -> list[TextLine]:
    records = view.recording.all(Guards)
    if not records:
        return [heading("guards", "none recorded")]
    lines: list[TextLine] = []
    last: dict[str, Guards] = {}
    for record in records:
        frame = record.compile_id.partition("/")[0]
        lines += [*_compile(view, record, last.get(frame)), BLANK]
        last[frame] = record
    return lines[:-1]


def _compile(view: SectionView, record: Guards, before: Guards | None) -> list[TextLine]:
    """The guards of one compile; for a recompile, those that differ from the compile before it."""
    groups = guard_groups(view.recording, record)
    cost = ""
    if record.check_us is not None:
        took = record.check_us
        shown = f"{took:.1f} µs" if took < 1000 else seconds_text(took / 1e6)
        cost = f", one check {shown}"
    lines = [
        heading(
            f"guards {record.compile_id} {record.function}".rstrip(),
            plural(record.count, "guard") + cost,
        )
    ]
    if record.dynamic:
        sizes = ", ".join(_dynamic(size) for size in record.dynamic)
        lines.append(line(("  dynamic    ", "dim"), sizes, hang=13))
    conditions = groups.conditions
    if before is not None and view.detail != "all":
        earlier = guard_groups(view.recording, before)
        known = {(one.name, one.value) for one in earlier.conditions}
        conditions = tuple(one for one in conditions if (one.name, one.value) not in known)
    lines += _rows(view, [(one.name, one.value, one.guards[0]) for one in conditions])
    same = len(groups.conditions) - len(conditions)
    if view.detail == "all":
        lines += _all(view, groups)
    elif before is not None:
        rest = sum(len(group.guards) for group in groups.kinds)
        what = f"{plural(same, 'condition')} as in {before.compile_id}"
        lines.append(line((f"  {what}, and {plural(rest, 'guard')} by kind", "dim")))
    elif groups.kinds:
        lines.append(line("  and guards that hold unless code or modules change:"))
        lines += table(_kinds(groups), "rlf", view.width, 2)
    return lines


def _dynamic(size: DynamicSize) -> str:
    """`x.size(0) (s77, at least 2)`."""
    least, most = size.lower, size.upper
    bounds = ""
    if least is not None and most is not None:
        bounds = f", {least} to {most}"
    elif least is not None:
        bounds = f", at least {least}"
    elif most is not None:
        bounds = f", at most {most}"
    return f"{size.name} ({size.symbol}{bounds})"


def _kinds(groups: GuardGroups) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for group in groups.kinds:
        words = group.words or "no description"
        example = f"  {group.example}" if group.example else ""
        rows.append([(str(len(group.guards)), "strong"), (group.kind, "dim"), words + example])
    return rows


def _all(view: SectionView, groups: GuardGroups) -> list[TextLine]:
    """Every guard, including flags that were folded into one row."""
    together: list[Condition] = [one for one in groups.conditions if len(one.guards) > 1]
    lines = []
    for one in together:
        lines += [BLANK, line((f"  {one.name}", "dim")), *_rows(view, _each(one.guards))]
    for group in groups.kinds:
        head = f"  {len(group.guards)} {group.kind}"
        lines += [BLANK, line((head, "dim"), f"  {group.words}", hang=4)]
        lines += _rows(view, _each(group.guards))
    return lines


def _each(guards: Sequence[Guard]) -> list[tuple[str, str, Guard]]:
    return [(one.name or one.source or one.kind, condition_value(one), one) for one in guards]


def _rows(view: SectionView, rows: Sequence[tuple[str, str, Guard]]) -> list[TextLine]:
    """Name, value and place in columns; names and values wrap and are never cut."""
    if not rows:
        return []
    room = view.width - 6
    least, most = PLACE
    names = min(max(cell_len(plain(name)) for name, _, _ in rows), room - least - LEAST)
    widest = max(cell_len(plain(value)) for _, value, _ in rows)
    last = max(least, min(most, room - names - widest))
    places = [_place(view, guard, last) for _, _, guard in rows]
    values = min(widest, room - names - max(map(cell_len, places)))
    lines = []
    for (name, value, _), place in zip(rows, places, strict=True):
        name, value = plain(name), plain(value)
        gap = " " * max(0, names - cell_len(name))
        if cell_len(name) > names:
            lines.append(line("  ", name, hang=4))
            name, gap = "", " " * names
        pad = " " * max(0, values - cell_len(value))
        lines.append(
            line("  ", name, gap + "  ", value, pad + "  ", (place, "dim"), hang=names + 4)
        )
    return lines


def _place(view: SectionView, guard: Guard, width: int) -> str:
    place = guard.location
    return keep_end(view.names.place(place.file, place.line), width) if place else ""
