"""`--show autograd`: what crosses from the forward to the backward, and why."""

from __future__ import annotations

from compiler.trace.records import Partition, SavedValue
from viewers.kit.lines import BLANK, TextLine
from viewers.kit.table import Cell, heading, table
from viewers.text.sections import SectionView
from viewers.words import bytes_text, plural


def section(view: SectionView) -> list[TextLine]:
    partitions = view.summary.memory.partitions
    if not partitions:
        return [heading("autograd", "no backward was recorded: record with --train")]
    lines: list[TextLine] = []
    for partition in partitions:
        lines += [*_partition(view, partition), BLANK]
    return lines[:-1]


def _partition(view: SectionView, partition: Partition) -> list[TextLine]:
    saved = [value for value in partition.values if value.choice == "saved"]
    facts = f"{plural(len(saved), 'value')} saved, {bytes_text(partition.saved_bytes)}"
    facts += f"; {plural(partition.recomputed, 'operation')} recomputed"
    ranked = sorted(partition.values, key=lambda one: (one.choice != "saved", -(one.bytes or 0)))
    rows = [_row(view, value) for value in ranked]
    return [
        heading(f"autograd {partition.compile_id}", facts),
        *table(rows, "elrlf", view.width, 2),
    ]


def _row(view: SectionView, value: SavedValue) -> list[Cell]:
    place = value.location
    return [
        value.node,
        (value.choice, "hot" if value.choice == "saved" else "dim"),
        bytes_text(value.bytes),
        (view.names.place(place.file, place.line) if place else "", "dim"),
        value.reason,
    ]
