"""`--show phases`: where the compile time went; own times add up, the last columns do not."""

from __future__ import annotations

from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import number, plural, seconds_text

FOLDED = 1000
"""Phases below this share of the time are counted on one line."""


def section(view: SectionView) -> list[TextLine]:
    phases = view.summary.phases
    if not phases:
        return [heading("phases", "none recorded")]
    total = sum(phase.self_seconds for phase in phases)
    beside = sum(phase.beside_seconds for phase in phases)
    shown = [one for one in phases if max(one.self_seconds, one.beside_seconds) >= total / FOLDED]
    rows: list[list[Cell]] = [
        [
            ("phase", "dim"),
            ("times", "dim"),
            ("own", "dim"),
            ("with inner", "dim"),
            ("on build threads" if beside else "", "dim"),
        ]
    ]
    rows += [
        [
            phase.name,
            number(phase.count),
            (seconds_text(phase.self_seconds), "strong"),
            seconds_text(phase.seconds),
            (seconds_text(phase.beside_seconds) if phase.beside_seconds else "", "dim"),
        ]
        for phase in shown
    ]
    lines = [
        heading("phases", f"{seconds_text(total)} of own time"),
        *table(rows, "frrrr", view.width, 2),
    ]
    folded = [one for one in phases if one not in shown]
    if folded:
        rest = seconds_text(sum(one.self_seconds for one in folded))
        lines.append(line((f"  {plural(len(folded), 'phase')} below 0.1%: {rest}", "dim")))
    return lines
