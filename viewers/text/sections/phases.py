"""`--show phases`: where the compile time went; own time adds up, the other column nests."""

from __future__ import annotations

from viewers.text.lines import Line
from viewers.text.sections import View
from viewers.text.table import Cell, heading, table
from viewers.words import number, seconds_text


def section(view: View) -> list[Line]:
    phases = view.summary.phases
    if not phases:
        return [heading("phases", "none recorded")]
    total = sum(phase.self_seconds for phase in phases)
    rows: list[list[Cell]] = [
        [("phase", "dim"), ("times", "dim"), ("own", "dim"), ("with inner", "dim")]
    ]
    rows += [
        [
            phase.name,
            number(phase.count),
            (seconds_text(phase.self_seconds), "strong"),
            seconds_text(phase.seconds),
        ]
        for phase in phases
    ]
    return [
        heading("phases", f"{seconds_text(total)} of own time"),
        *table(rows, "lrrr", view.width, 2),
    ]
