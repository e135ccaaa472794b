"""`--show guards`: the conditions under which each compiled frame may be used again."""

from __future__ import annotations

from collections import Counter

from compiler.trace.records import Guard, Guards
from viewers.text.lines import BLANK, Line, line
from viewers.text.sections import View
from viewers.text.table import Cell, heading, table
from viewers.words import plural


def section(view: View) -> list[Line]:
    records = view.recording.all(Guards)
    if not records:
        return [heading("guards", "none recorded")]
    lines: list[Line] = []
    for record in records:
        lines += [*_frame(view, record), BLANK]
    return lines[:-1]


def _frame(view: View, record: Guards) -> list[Line]:
    kinds = Counter(guard.kind for guard in record.guards)
    cost = f", one check {record.check_us:.1f} µs" if record.check_us is not None else ""
    lines = [
        heading(
            f"guards {record.compile_id} {record.function}".rstrip(),
            plural(len(record.guards), "guard") + cost,
        ),
        line("  ", (", ".join(f"{n} {kind}" for kind, n in kinds.most_common()), "dim"), hang=2),
    ]
    order = [kind for kind, _ in kinds.most_common()]
    ranked = sorted(record.guards, key=lambda one: (order[::-1].index(one.kind), one.name))
    lines += table([_row(view, guard) for guard in ranked], "lell", 2, {1: 44, 2: 60})
    return lines


def _row(view: View, guard: Guard) -> list[Cell]:
    place = guard.location
    return [
        (guard.kind, "dim"),
        guard.name or guard.source or "global state",
        guard.value or (guard.code[0] if guard.code else ""),
        (view.names.place(place.file, place.line) if place else "", "dim"),
    ]
