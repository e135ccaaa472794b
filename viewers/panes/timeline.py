"""The timeline: a segment per attempt at a compile, with what happened where and where we are."""

from __future__ import annotations

import math
from itertools import groupby

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import (
    Graph,
    GraphBreak,
    Guards,
    Kernel,
    MemoryPlan,
    Partition,
    Recompile,
    Record,
)
from tcw.viewers.kit.spans import Line, Role, Span, text, width_of
from tcw.viewers.losses import losses_short
from tcw.viewers.panes import autograd, breaks, fusion, guard_list, memory_chart, recompiles
from tcw.viewers.panes.view import View
from tcw.viewers.summary.function_names import FunctionNames
from tcw.viewers.timeline import CompileAttempt, Mark
from tcw.viewers.words import number

MARKS: dict[Mark, tuple[str, Role]] = {
    "break": ("✗", "bad"),
    "recompile": ("↻", "warn"),
    "breakpoint": ("●", "accent"),
    "override": ("*", "accent"),
    "note": ('"', "hot"),
}
STAGES: dict[type[Record], str] = {
    GraphBreak: "break",
    Guards: "guards",
    Recompile: "recompile",
    Partition: "autograd",
    MemoryPlan: "memory",
    Kernel: "kernel",
}
_RANK = {mark: rank for rank, mark in enumerate(("recompile", "break", "breakpoint", "note"))}


def timeline(view: View, width: int, arrangement: str = "") -> tuple[Line, Line, Line]:
    """The line of segments, their names below it, and where we are, for the right of these.

    Widths grow with the root of the time.
    """
    right = position(view, arrangement)
    segments, sizes = _segments(view, width, arrangement)
    if not segments:
        words = " no compile yet"
        return ((" " + "─" * (width - 2), "faint"),), ((words, "faint"),), right
    here = place(view, arrangement) - 1
    above: list[Span] = [(" ", "text")]
    for segment, size in zip(segments, sizes, strict=True):
        above += [*_drawn(segment, size, here), (" ", "text")]
    names = _names(segments, sizes, here, width - width_of(right), view.derived.functions)
    return tuple(above), names, right


def place(view: View, arrangement: str) -> int:
    """Up to which record the reader looks, from 1: in a replay the one behind the selection; else
    the last."""
    if view.playhead or view.live or view.driven:
        return view.shown
    record = _shown(view, arrangement)
    found = view.derived.trace.place(record) if record is not None else 0
    return found or view.shown


def _shown(view: View, arrangement: str) -> Record | None:
    """The record that an arrangement shows, by its selection; None if it shows none alone."""
    site, cause = breaks.site_of(view), recompiles.cause_of(view)
    if arrangement == "break" and site is not None:
        return next((r for r in site.records if r.compile_id == view.compile_id), site.records[0])
    if arrangement == "recompiles" and cause is not None:
        return cause.frames[0].record
    if arrangement == "fusion":
        pair = fusion.chosen_pair(view)
        return pair.records[-1] if pair is not None and pair.records else None
    if arrangement == "memory":
        return memory_chart.plan_of(view)
    if arrangement == "guards":
        return guard_list.guards_of(view)
    if arrangement == "autograd":
        return autograd.split_of(view)
    if arrangement in ("kernels", "profile", "region"):
        return view.shown_kernel()
    if arrangement == "source":
        return _selected(view)
    return None


def _selected(view: View) -> Record | None:
    kind = refs.kind(view.ref) if view.ref else ""
    if kind == "k":
        return view.shown_kernel()
    if kind in ("fx", "ir"):
        return view.recording.graphs.get(refs.split_node(view.ref)[0]) or view.graph()
    return view.graph()


def at(view: View, width: int, x: int, arrangement: str = "") -> int:
    """How many records lead up to cell `x` of the timeline; 0 if it has none."""
    edge = 1
    for segment, size in zip(*_segments(view, width, arrangement), strict=True):
        if x < edge + size + 1:
            return min(segment.last, segment.first + _index(segment, size, x - edge)) + 1
        edge += size + 1
    return 0


def _segments(view: View, width: int, arrangement: str) -> tuple[list[CompileAttempt], list[int]]:
    """The segments of this run that have room, and the cells of each (a blank follows).

    Where there are too many, those around the present one are shown.
    """
    segments = [segment for segment in view.track.segments if segment.run == view.run]
    compiles = [segment for segment in segments if segment.compile_id]
    segments = compiles or segments
    room = width - 2
    most = max(1, room // 3)
    if len(segments) > most:
        here = place(view, arrangement) - 1
        current = max((i for i, segment in enumerate(segments) if segment.first <= here), default=0)
        first = max(0, min(current - most // 2, len(segments) - most))
        segments = segments[first : first + most]
    weights = [math.sqrt(max(segment.seconds, 0.05)) for segment in segments]
    total = sum(weights) or 1.0
    spare = room - 3 * len(segments)
    return segments, [2 + int(spare * weight / total) for weight in weights]


def _cell(segment: CompileAttempt, size: int, index: int) -> int:
    """The cell of a record in its segment: the last record is in the last cell."""
    span = segment.last - segment.first
    return (index - segment.first) * (size - 1) // span if span else 0


def _index(segment: CompileAttempt, size: int, cell: int) -> int:
    """The last record of a cell, counted within the segment."""
    span = segment.last - segment.first
    return min(span, max(0, -(-(cell + 1) * span // (size - 1)) - 1)) if size > 1 else span


def _drawn(segment: CompileAttempt, size: int, here: int) -> Line:
    now = _cell(segment, size, here) if segment.first <= here <= segment.last else None
    past = size if here > segment.last else now if now is not None else 0
    cells: list[Span] = [("━", "dim") if cell < past else ("─", "faint") for cell in range(size)]
    for index, mark in sorted(segment.marks, key=lambda found: _RANK.get(found[1], 9)):
        cells[_cell(segment, size, index)] = MARKS[mark]
    if now is not None:
        cells[now] = ("▼", "accent")
    grouped = groupby(cells, key=lambda cell: cell[1])
    return tuple(("".join(words for words, _ in run), role) for role, run in grouped)


def _names(
    segments: list[CompileAttempt],
    sizes: list[int],
    here: int,
    room: int,
    functions: FunctionNames,
) -> Line:
    """One name a compile, below its first attempt; it may run on below the others."""
    spans: list[Span] = [(" ", "text")]
    free = start = 0
    for _, run in groupby(zip(segments, sizes, strict=True), key=lambda pair: pair[0].compile_id):
        attempts = list(run)
        size = sum(cells + 1 for _, cells in attempts) - 1
        first, last = attempts[0][0], attempts[-1][0]
        current = first.first <= here <= last.last
        if start >= free:
            name = first.name
            if not first.resumes:
                name = functions.of(first.compile_id, name)
            for shown in (f"{first.compile_id} {name}".strip(), first.compile_id, ""):
                fits = start + len(shown) < room - 1
                if fits and (len(shown) <= size or (current and shown)):
                    break
            if shown:
                spans.append((" " * (start - free), "text"))
                spans.append(text(shown, "accent" if current else "dim"))
                spans.append((" ", "text"))
                free = start + len(shown) + 1
        start += size + 1
    return tuple(spans)


def position(view: View, arrangement: str) -> Line:
    """`kernel  record 591 / 1,634`, `capture, attempt 2   live`; what is lost or not shown."""
    lost = losses_short(view.recording.losses, len(view.derived.trace.runs_left_out))
    spans: list[Span] = [(f"{lost}  ", "warn")] if lost else []
    total = number(view.track.count)
    segment = view.track.segment_at(view.shown)
    attempt = f", attempt {segment.attempt + 1}" if segment and segment.attempt else ""
    if view.playhead:
        stage = view.track.stage_at(view.playhead)
        words = f"{stage}{attempt if stage == 'capture' else ''}"
        return (
            *spans,
            (f"{words}  ", "dim"),
            (f"record {number(view.playhead)}", "accent"),
            (f" / {total} ", "dim"),
        )
    if view.driven:
        waiting = view.waiting
        stage = waiting.stage if waiting is not None else view.track.stage_at(view.shown)
        return (*spans, text(f"{stage}{attempt if stage == 'capture' else ''}   live ", "dim"))
    record = _shown(view, arrangement)
    found = view.derived.trace.place(record) if record is not None else 0
    if record is None or not found:
        return (*spans, (f"{total} records ", "dim"))
    stage = record.kind if isinstance(record, Graph) else STAGES.get(type(record), "fusion")
    return (*spans, (f"{stage}  record {number(found)} / {total} ", "dim"))
