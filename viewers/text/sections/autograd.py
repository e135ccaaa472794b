"""`--show autograd`: what crosses from the forward to the backward, and why."""

from __future__ import annotations

from compiler.trace.records import Partition, SavedValue
from viewers.kit.lines import BLANK, TextLine
from viewers.kit.table import Cell, heading, table
from viewers.summary.memory import by_choice, partition_words
from viewers.text.sections import SectionView
from viewers.words import bytes_text


def section(view: SectionView) -> list[TextLine]:
    partitions = view.summary.memory.partitions
    if not partitions:
        return [heading("autograd", "no backward was recorded: record with --train")]
    lines: list[TextLine] = []
    for partition in partitions:
        lines += [*_partition(view, partition), BLANK]
    return lines[:-1]


def _partition(view: SectionView, partition: Partition) -> list[TextLine]:
    rows = [_row(view, value) for value in by_choice(partition)]
    return [
        heading(f"autograd {partition.compile_id}", partition_words(partition)),
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
