"""Two engines side by side: figures, stages, and the kernels that each made of the same lines."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, zip_longest

from tcw.viewers.kit.cells import pad, pad_left
from tcw.viewers.kit.spans import Role
from tcw.viewers.panes import kernel as kernel_pane
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row, text_rows
from tcw.viewers.panes.targets import ToLineup
from tcw.viewers.panes.view import View
from tcw.viewers.summary.engine_comparison import Comparison
from tcw.viewers.tables.engine_lines import graphs_lines, lineup_lines, stages_lines, verdict_line
from tcw.viewers.words import bytes_text, milliseconds_text, number, seconds_text

FIGURE = 12
"""Cells of a figure."""
NAME = 16


def content(view: View, width: int) -> Content:
    comparison = view.derived.comparison
    if comparison is None:
        return Content(
            "engines",
            rows=empty(width, "one engine was recorded", "tcw explain --engine both compares two"),
        )
    rows = [
        BLANK,
        *text_rows([verdict_line(comparison)], width, indent=1),
        BLANK,
        *_figures(comparison),
        BLANK,
        *_stages(comparison, width),
        *text_rows(graphs_lines(comparison, width - 1, 1), width),
        BLANK,
        *_kernels(view, comparison, width),
    ]
    names = " and ".join(column.engine for column in comparison.columns)
    return Content(
        "engines", names, rows=rows, start=str(ToLineup(view.lined)), tracks=True, still=True
    )


def _line(what: str, *cells: str, role: Role = "text") -> Row:
    spans: list[tuple[str, Role]] = [(f" {pad(what, NAME)}", "dim")]
    spans += [(pad_left(cell, FIGURE), role) for cell in cells]
    return Row(body=tuple(spans))


def _figures(comparison: Comparison) -> list[Row]:
    columns = comparison.columns
    speeds = [column.summary.speed for column in columns]
    peaks = [column.peak_bytes for column in columns]
    return [
        _line("", *(column.engine for column in columns), role="strong"),
        _line("a call", *(milliseconds_text(s.compiled_ms if s else None) for s in speeds)),
        _line("compiled in", *(seconds_text(s.compile_seconds if s else None) for s in speeds)),
        _line("CPU of that", *(seconds_text(s.compile_cpu_seconds if s else None) for s in speeds)),
        _line("loop nests", *(number(column.loop_nests) for column in columns)),
        _line("generated", *(number(column.functions) for column in columns)),
        _line("library calls", *(number(column.calls) for column in columns)),
        _line("memory peak", *("unknown" if p is None else bytes_text(p) for p in peaks)),
    ]


def _stages(comparison: Comparison, width: int) -> list[Row]:
    if not comparison.stages:
        return []
    head = text_row((" time by stage, wall", "dim"))
    return [head, *text_rows(stages_lines(comparison, width - 1, 1), width), BLANK]


def _kernels(view: View, comparison: Comparison, width: int) -> list[Row]:
    """The kernels of each graph, to choose one."""
    rows: list[Row] = []
    lined = count()
    tables = lineup_lines(comparison, view.derived.names, width - 1, 1, view.derived.main_file)
    for graph, (head, *lines) in tables.items():
        rows += [*([BLANK] if rows else []), text_row((f" {graph}", "dim"))]
        rows += text_rows([head], width)
        rows += [replace(text_rows([line], width)[0], at=ToLineup(next(lined))) for line in lines]
    return rows


def side(view: View, width: int, second: bool) -> Content:
    """The code that one of the engines made of the chosen lines."""
    comparison = view.derived.comparison
    if comparison is None:
        name = "second engine" if second else "first engine"
        return Content(name, rows=empty(width, "one engine was recorded"))
    column = comparison.columns[second]
    pairs = [
        pair for kernel in comparison.kernels for pair in zip_longest(kernel.first, kernel.second)
    ]
    chosen = pairs[min(view.lined, len(pairs) - 1)][second] if pairs else None
    if chosen is None:
        why = f"{column.engine} made no kernel of its own here"
        return Content(column.engine, rows=empty(width, why))
    derived = view.derived.of_engines[column.engine]
    other = replace(view, derived=derived, kernel=chosen.id, language="cpp", lit={}, ref="")
    other.compile_id = next(
        (c for c, ks in derived.recording.kernels_of.items() if chosen in ks), ""
    )
    shown = kernel_pane.content(other, width)
    return replace(shown, name=column.engine)
