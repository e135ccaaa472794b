"""`--show autograd`: what crosses from the forward to the backward, and why."""

from __future__ import annotations

from tcw.compiler.trace.records import Partition
from tcw.viewers.kit.lines import TextLine, apart
from tcw.viewers.kit.table import heading
from tcw.viewers.summary.memory_plans import by_choice, partition_words
from tcw.viewers.tables.saved import saved_lines
from tcw.viewers.text.sections import SectionView


def section(view: SectionView) -> list[TextLine]:
    partitions = view.recording.all(Partition)
    if not partitions:
        return [heading("autograd", "no backward was recorded: record with --train")]
    return apart(_partition(view, partition) for partition in partitions)


def _partition(view: SectionView, partition: Partition) -> list[TextLine]:
    return [
        heading(f"autograd {partition.compile_id}", partition_words(partition)),
        *saved_lines(by_choice(partition), view.names, view.width, 2),
    ]
