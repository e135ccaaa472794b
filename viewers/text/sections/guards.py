"""`--show guards`: the conditions under which each compiled frame may be used again."""

from __future__ import annotations

from collections import Counter

from compiler.trace.records import Guard, Guards
from viewers.text.lines import BLANK, Line, line
from viewers.text.sections import View
from viewers.text.table import Cell, heading, table
from viewers.words import plural

VALUES = ("TENSOR_MATCH", "SHAPE_ENV", "EQUALS_MATCH", "CONSTANT_MATCH", "SEQUENCE_LENGTH")
"""Kinds of guard that look at sizes and values, not at the identity of code and modules."""


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
    ranked = sorted(record.guards, key=lambda one: (_rank(one.kind), kinds[one.kind], one.kind))
    lines += table([_row(view, guard) for guard in ranked], "lefl", view.width, 2)
    return lines


def _rank(kind: str) -> int:
    """The guards on what a caller may change come first."""
    return VALUES.index(kind) if kind in VALUES else len(VALUES)


def _row(view: View, guard: Guard) -> list[Cell]:
    place = guard.location
    return [
        (guard.kind, "dim"),
        guard.name or guard.source or "global state",
        guard.value or (guard.code[0] if guard.code else ""),
        (view.names.place(place.file, place.line) if place else "", "dim"),
    ]
