"""`--show memory`: peak, reuse and the largest buffers of each graph."""

from __future__ import annotations

from compiler.trace.records import Buffer
from viewers.kit.lines import BLANK, TextLine
from viewers.kit.table import Cell, heading, table
from viewers.summary.memory import GraphMemory, peak_words, reuse_words
from viewers.text.sections import SectionView
from viewers.words import bytes_text


def section(view: SectionView) -> list[TextLine]:
    graphs = view.summary.memory.graphs
    if not graphs:
        return [heading("memory", "no plan recorded: no graph reached memory planning")]
    lines: list[TextLine] = []
    for graph in graphs:
        lines += [*_graph(graph, view.width), BLANK]
    return lines[:-1]


def _graph(graph: GraphMemory, width: int) -> list[TextLine]:
    peak = peak_words(graph.peak_bytes, graph.without_reuse_bytes, graph.reuse)
    facts = [peak, reuse_words(graph.reuse)]
    rows = [_row(buffer) for buffer in graph.largest]
    return [heading(f"memory {graph.graph}", ", ".join(facts)), *table(rows, "lrllf", width, 2)]


def _row(buffer: Buffer) -> list[Cell]:
    reuse = f"→ reuses {buffer.reuses}" if buffer.reuses else ""
    return [
        buffer.name,
        bytes_text(buffer.bytes),
        (buffer.kind, "hot" if buffer.kind == "saved" else "dim"),
        (f"steps {buffer.first}–{buffer.last}", "dim"),
        " ".join(filter(None, [buffer.label, reuse, "in place" if buffer.inplace else ""])),
    ]
