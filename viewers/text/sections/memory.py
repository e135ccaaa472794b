"""`--show memory`: peak, reuse and the largest buffers of each graph."""

from __future__ import annotations

from tcw.compiler.trace.records import Buffer, MemoryPlan
from tcw.viewers.kit.lines import TextLine, apart
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.summary.memory_plans import peak_words, reuse_of, reuse_words
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import bytes_text

LARGEST = 5
"""Maximum number of buffers listed of each graph, unknown sizes last."""


def section(view: SectionView) -> list[TextLine]:
    plans = view.recording.all(MemoryPlan)
    if not plans:
        return [heading("memory", "no plan recorded: no graph reached memory planning")]
    return apart(_graph(plan, view.width) for plan in plans)


def _graph(plan: MemoryPlan, width: int) -> list[TextLine]:
    reuse = reuse_of(plan)
    facts = f"{peak_words(plan, reuse)}, {reuse_words(reuse)}"
    own = [buffer for buffer in plan.buffers if buffer.kind != "input"]
    largest = sorted(own, key=lambda one: -(one.bytes or 0))[:LARGEST]
    rows = [_row(buffer) for buffer in largest]
    return [heading(f"memory {plan.graph}", facts), *table(rows, "lrllf", width, 2)]


def _row(buffer: Buffer) -> list[Cell]:
    reuse = f"→ reuses {buffer.reuses}" if buffer.reuses else ""
    return [
        buffer.name,
        bytes_text(buffer.bytes),
        (buffer.kind, "hot" if buffer.kind == "saved" else "dim"),
        (f"steps {buffer.first}–{buffer.last}", "dim"),
        " ".join(filter(None, [buffer.label, reuse, "in place" if buffer.inplace else ""])),
    ]
