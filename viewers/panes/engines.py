"""Two engines side by side: figures, stages, and the kernels that each made of the same lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest

from tcw.compiler.trace.records import Kernel
from tcw.viewers.kit.cells import cut, pad, pad_left
from tcw.viewers.kit.spans import Line, Role, text
from tcw.viewers.panes import kernel as kernel_pane
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_rows
from tcw.viewers.panes.targets import ToLineup
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.plain import plain
from tcw.viewers.summary.engine_comparison import Comparison, LineUp
from tcw.viewers.tables.engines import stages_lines, verdict_line
from tcw.viewers.words import bytes_text, milliseconds_text, number, numbers_text, seconds_text

FIGURE = 12
"""Cells of a figure."""
NAME = 16
LINES = 9


@dataclass(frozen=True)
class EnginesRow:
    """A row of the kernels: a kernel of each engine, of the same lines."""

    line_up: LineUp
    first: Kernel | None
    second: Kernel | None


def places(comparison: Comparison) -> list[EnginesRow]:
    """All rows of kernels in order."""
    return [
        EnginesRow(one, first, second)
        for one in comparison.kernels
        for first, second in zip_longest(one.first, one.second)
    ]


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
    head = Row(body=((" time by stage, wall", "dim"),))
    return [head, *text_rows(stages_lines(comparison, width - 1, 1), width), BLANK]


def _kernels(view: View, comparison: Comparison, width: int) -> list[Row]:
    rows: list[Row] = []
    room = max(12, (width - 12) // 2)
    graph = ""
    first, second = (view.derived.of_engines[one.engine] for one in comparison.columns)
    for index, place in enumerate(places(comparison)):
        if place.line_up.graph != graph:
            graph = place.line_up.graph
            rows += [*([BLANK] if rows else []), Row(body=(text(f" {graph}", "dim"),))]
        lines = _few(numbers_text(line for _, line in place.line_up.lines)) or "–"
        rows.append(
            Row(
                gutter=(text(pad_left(lines, LINES) + " ", "faint"),),
                body=(*_kernel(first, place.first, room), *_kernel(second, place.second, room)),
                at=ToLineup(index),
            )
        )
    return rows


def _few(lines: str) -> str:
    """As many of the lines as there is room for: no number is cut."""
    shown = ""
    for part in lines.split(", "):
        longer = f"{shown}, {part}" if shown else part
        if len(longer) > LINES - (0 if longer == lines else 2):
            return f"{shown} …" if shown else cut(lines, LINES)
        shown = longer
    return shown


def _kernel(derived: Derived, kernel: Kernel | None, room: int) -> Line:
    if kernel is None:
        return ((" " * room, "dim"),)
    role: Role = "text" if kernel.generated else "dim"
    words = plain(f"{kernel.id} {derived.called.name(kernel)}")
    return ((pad(cut(words, room - 1), room), role),)


def side(view: View, width: int, second: bool) -> Content:
    """The code that one of the engines made of the chosen lines."""
    comparison = view.derived.comparison
    if comparison is None:
        name = "second engine" if second else "first engine"
        return Content(name, rows=empty(width, "one engine was recorded"))
    column = comparison.columns[second]
    found = places(comparison)
    place = found[min(view.lined, len(found) - 1)] if found else None
    chosen = (place.second if second else place.first) if place else None
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
