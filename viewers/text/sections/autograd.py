"""`--show autograd`: what crosses from the forward to the backward, and why."""

from __future__ import annotations

from compiler.trace.records import Partition
from viewers.kit.lines import BLANK, TextLine
from viewers.kit.table import heading
from viewers.summary.memory import by_choice, partition_words
from viewers.tables.saved import saved_lines
from viewers.text.sections import SectionView


def section(view: SectionView) -> list[TextLine]:
    partitions = view.summary.memory.partitions
    if not partitions:
        return [heading("autograd", "no backward was recorded: record with --train")]
    lines: list[TextLine] = []
    for partition in partitions:
        lines += [*_partition(view, partition), BLANK]
    return lines[:-1]


def _partition(view: SectionView, partition: Partition) -> list[TextLine]:
    return [
        heading(f"autograd {partition.compile_id}", partition_words(partition)),
        *saved_lines(by_choice(partition), view.names, view.width, 2),
    ]
