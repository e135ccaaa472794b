"""`--show engines`: both engines on the same graphs, stages and lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcw.compiler.trace.records import Kernel
from tcw.viewers.kernel_names import KernelNames
from tcw.viewers.kit.lines import BLANK, TextLine, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.labels import WRITTEN_IN
from tcw.viewers.summary.engine_comparison import Both, Comparison, LineUp, compare
from tcw.viewers.tables.engines import stages_lines
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import bytes_text, number, plural


def section(view: SectionView) -> list[TextLine]:
    comparison = compare(view.recording)
    if comparison is None:
        return [heading("engines", "only one was recorded: use --engine both to compare two")]
    lines = [*_stages(comparison, view.width), BLANK, *_graphs(comparison, view.width)]
    for graph in dict.fromkeys(one.graph for one in comparison.kernels):
        lines += [BLANK, *_kernels(comparison, graph, view)]
    if view.detail == "sources":
        for one in comparison.kernels:
            lines += _sources(comparison, one, view)
    return lines


def _stages(comparison: Comparison, width: int) -> list[TextLine]:
    note = "  CPU time: the process and the children it waited for, not build workers"
    return [
        heading("engines", "where the time of compiling went"),
        *stages_lines(comparison, width, 2),
        line((note, "dim"), hang=2),
    ]


def _graphs(comparison: Comparison, width: int) -> list[TextLine]:
    first, second = (column.engine for column in comparison.columns)
    rows: list[list[Cell]] = [
        [("graph", "dim"), ("loop nests", "dim"), ("library calls", "dim"), ("peak bytes", "dim")]
    ]
    for pair in comparison.graphs:
        rows.append([pair.graph, _arrow(pair.nests), _arrow(pair.calls), _arrow(pair.peak, _size)])
    return [heading("engines", f"{first} → {second}"), *table(rows, "lrrr", width, 2)]


def _size(value: float) -> str:
    return bytes_text(int(value))


def _arrow(both: Both, words: Callable[[float], str] = lambda value: number(int(value))) -> str:
    first, second = ("?" if one is None else words(one) for one in (both.first, both.second))
    return f"{first} → {second}"


def _kernels(comparison: Comparison, graph: str, view: SectionView) -> list[TextLine]:
    """Kernels side by side, by user line."""
    names = [KernelNames(column.recording) for column in comparison.columns]
    rows: list[list[Cell]] = [
        [("lines", "dim"), *((column.engine, "dim") for column in comparison.columns)]
    ]
    for one in comparison.kernels:
        if one.graph != graph:
            continue
        where = view.names.lines(one.lines) or "no user line"
        for place in range(max(len(one.first), len(one.second))):
            left, right = (
                _kernel(known, side, place)
                for known, side in zip(names, (one.first, one.second), strict=True)
            )
            rows.append([where if place == 0 else "", left, right])
    return [
        heading(f"engines {graph}", "kernels of the same lines"),
        *table(rows, "fff", view.width, 2),
    ]


def _kernel(names: KernelNames, kernels: Sequence[Kernel], place: int) -> Cell:
    if place >= len(kernels):
        return ""
    kernel = kernels[place]
    if not kernel.generated:
        return (f"{kernel.id} {names.name(kernel)}  {WRITTEN_IN[kernel.language]}", "dim")
    nests = f"  {plural(kernel.loop_nests, 'nest')}" if kernel.loop_nests > 1 else ""
    return f"{kernel.id} {names.name(kernel)}{nests}"


def _sources(comparison: Comparison, one: LineUp, view: SectionView) -> list[TextLine]:
    """The full code that each engine generated for the same lines, one below the other."""
    lines: list[TextLine] = []
    for column, kernels in zip(comparison.columns, (one.first, one.second), strict=True):
        for kernel in kernels:
            text = column.recording.text(kernel.text)
            if not text:
                continue
            where = view.names.lines(one.lines)
            name = KernelNames(column.recording).name(kernel)
            words = f"{kernel.id} {name}  {WRITTEN_IN[kernel.language]}  {where}"
            lines += [BLANK, heading(column.engine, words)]
            lines += [line(f"  {row}", fixed=True) for row in text.splitlines()]
    return lines
