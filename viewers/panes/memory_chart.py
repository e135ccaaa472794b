"""The memory plan of one graph: a bar per buffer over the steps, and how much is live.

A row is a place in memory: a buffer that takes over another's is drawn behind it, in the same row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.cells import cell_len

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Buffer, Decided, MemoryPlan
from tcw.viewers.kit.cells import cut, keep_end, pad, pad_left, wrap
from tcw.viewers.kit.spans import Line, Role, Span, text
from tcw.viewers.labels import short_label
from tcw.viewers.panes.rows import BLANK, Content, Row, Rows, empty, fold_row, text_row
from tcw.viewers.panes.targets import Fold, ToBuffer
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.memory_plans import (
    MemoryPlace,
    alive,
    peak_words,
    places,
    reuse_decisions,
    reuse_of,
    reuse_words,
)
from tcw.viewers.words import bytes_text, number, plural

ROLES: dict[str, Role] = {"saved": "bar-hot", "output": "bar-hot"}
LEVELS = " ▁▂▃▄▅▆▇█"
NAME, SIZE = 12, 8
NOTE, KIND, LABEL = 13, 8, 14
NARROWEST, WIDEST = 4, 16
"""Cells of a step."""
LONGEST = 40
"""Maximum number of cells of a step with a long name."""
NAMED = 5
"""From this width in cells on, a step is named by what runs, not by its kernel's id."""
LIVE_LINES = 4
MOST_STEPS = 5000
"""Maximum number of steps drawn."""


def plan_of(view: View) -> MemoryPlan | None:
    """The last plan of the graph that is shown."""
    graph = view.loop_graph()
    return next((p for p in reversed(view.recording.all(MemoryPlan)) if p.graph == graph), None)


def content(view: View, width: int) -> Content:
    graph, plan = view.loop_graph(), plan_of(view)
    subject = base_graph(graph) or view.compile_id
    if plan is None:
        why = f"no memory plan of {subject or 'this recording'} was recorded"
        return Content("memory", subject, rows=empty(width, why, view.not_reached("memory")))
    chart = _Chart(view, plan, width)
    names = [_step_name(view, step) for step in plan.steps]
    live = alive(plan)
    above = [*_peak(plan, live, names, width), BLANK, chart.head(names)]
    inputs = [buffer for buffer in plan.buffers if buffer.kind == "input"]
    drawn: list[_Drawn] = []
    for place in sorted(places(plan), key=_order(view)):
        drawn.extend(chart.place(place))
    below = [BLANK, *chart.live(live)]
    owned: list[_Drawn] = []
    if inputs:
        key = f"{graph}:inputs"
        opened = key in view.unfolded
        below += [BLANK, _inputs(inputs, key, opened)]
        owned = [_Drawn(MemoryPlace((buffer,))) for buffer in inputs] if opened else []
    rows: list[Row | _Drawn] = [*above, *drawn, *below, *owned]

    def make(index: int) -> Row:
        row = rows[index]
        return row if isinstance(row, Row) else chart.row(row)

    words: list[Span] = [("■ ", "hot"), ("kept for backward or output  ", "dim")]
    words += [("■ ", "accent"), ("takes over another's memory", "dim")]
    if chart.cells > chart.room:
        words.append(("  h l scroll", "dim"))
    if chart.steps < len(plan.steps):
        said = f"  the first {number(chart.steps)} of {number(len(plan.steps))} steps"
        words.append((said, "warn"))
    keys = [row.key if isinstance(row, Row) else chart.key(row) for row in rows]
    return Content("memory", subject, tuple(words), Rows(len(rows), make, [""] * len(rows), keys))


def _order(view: View) -> Callable[[MemoryPlace], tuple[int, int]]:
    if view.order == "size":
        return lambda place: (-(place.bytes or 0), place.first)
    if view.order == "life":
        return lambda place: (place.first - place.last, place.first)
    return lambda place: (place.first, place.last)


@dataclass(frozen=True)
class _Drawn:
    """A row with a bar per step, made when it is shown."""

    place: MemoryPlace
    folds: str = ""
    inside: bool = False


class _Chart:
    """The rows that have bars, all with the same steps."""

    def __init__(self, view: View, plan: MemoryPlan, width: int) -> None:
        steps = min(len(plan.steps), MOST_STEPS) or 1
        self.view = view
        self.plan = plan
        self.steps = steps
        self.wide = width >= 90
        tail = NOTE + KIND + (LABEL + 1 if self.wide else 0)
        self.room = max(NARROWEST, width - NAME - SIZE - tail - 4)
        longest = max((cell_len(_step_name(view, step)) for step in plan.steps[:steps]), default=0)
        widest = max(WIDEST, min(LONGEST, longest - 2))
        self.cell = max(NARROWEST, min(widest, self.room // steps))
        self.cells = self.cell * steps
        self.largest = max((buffer.bytes or 0 for buffer in plan.buffers), default=1) or 1
        self.decided = reuse_decisions(view.recording, plan.graph)

    def head(self, names: list[str]) -> Row:
        spans: list[Span] = []
        for name in names[: self.steps]:
            kernel, _, label = name.partition(" ")
            words = plain(label if label and self.cell >= NAMED else kernel)
            spans.append((pad(cut(words, self.cell - 1), self.cell), "dim"))
        gutter = (pad(" buffer", NAME + 1), "dim"), (pad_left("size ", SIZE + 1), "dim")
        return Row(gutter=gutter, body=tuple(spans))  # type: ignore[arg-type]

    def place(self, place: MemoryPlace) -> list[_Drawn]:
        """A row; if several buffers share its place, also one for each when unfolded."""
        key = f"{self.plan.graph}:place:{place.buffers[0].name}"
        if len(place.buffers) < 3:
            return [_Drawn(place)]
        opened = key in self.view.unfolded
        rows = [_Drawn(place, key)]
        if opened:
            rows += [_Drawn(MemoryPlace((buffer,)), inside=True) for buffer in place.buffers[1:]]
        return rows

    @staticmethod
    def _subject(place: MemoryPlace) -> Buffer:
        return place.buffers[1] if len(place.buffers) == 2 else place.buffers[0]

    def at(self, drawn: _Drawn) -> ToBuffer:
        return ToBuffer(self._subject(drawn.place).name)

    def key(self, drawn: _Drawn) -> str:
        return str(self.at(drawn))

    def row(self, drawn: _Drawn) -> Row:
        place, folds = drawn.place, drawn.folds
        first = place.buffers[0]
        mark = "  " if drawn.inside else " "
        if folds:
            mark = "▾" if folds in self.view.unfolded else "▸"
        name = mark + keep_end(plain(first.name), NAME - 2)
        size = bytes_text(place.bytes) if place.bytes is not None else "?"
        subject = self._subject(place)
        decided = self.decided.get(place.buffers[1].name if folds else subject.name)
        return Row(
            gutter=((pad(name, NAME + 1), "text"), (pad_left(size, SIZE) + " ", "dim")),
            body=self._bars(place),
            right=(*self._note(place), (" ", "text")),
            at=self.at(drawn),
            copies=decided.id if decided is not None else first.name,
            opens=Fold(folds) if folds else None,
            decision=decided.id if decided is not None else "",
        )

    def _bars(self, place: MemoryPlace) -> Line:
        """The live ranges in sequence: each begins where the one before it ends."""
        spans: list[Span] = []
        at = 0
        for index, buffer in enumerate(place.buffers):
            after = place.buffers[index + 1] if index + 1 < len(place.buffers) else None
            end = min(buffer.last + 1, self.steps)
            if after is not None:
                end = min(end, max(after.first, buffer.first))
            start = min(max(at, buffer.first), self.steps)
            spans.append((" " * ((start - at) * self.cell), "text"))
            size = max(0, end - start) * self.cell
            gap = 1 if size and self.cell > 1 else 0
            spans += [
                (self._glyph(buffer) * (size - gap), _role(buffer, index)),
                (" " * gap, "text"),
            ]
            at = max(start, end)
        spans.append((" " * max(0, (self.steps - at) * self.cell), "text"))
        return tuple(spans)

    def _glyph(self, buffer: Buffer) -> str:
        """The height is the size's class: eighths of the root of its part of the largest."""
        if buffer.bytes is None:
            return "?"
        part: float = (buffer.bytes / self.largest) ** 0.5
        return LEVELS[max(1, min(8, round(8 * part)))]

    def _note(self, place: MemoryPlace) -> Line:
        """`→ buf18`, `saved`; and what it holds, if there is room."""
        first, last = place.buffers[0], place.buffers[-1]
        kind = last.kind if last.kind != "temporary" else ""
        tone: Role = "hot" if last.kind in ROLES else "faint"
        if len(place.buffers) > 1:
            more = f" +{len(place.buffers) - 2}" if len(place.buffers) > 2 else ""
            reuse = cut(f"→ {place.buffers[1].name}", NOTE - len(more)) + more
        else:
            reuse = f"← {first.reuses}" if first.reuses else ""
        spans: list[Span] = [text(pad(cut(reuse, NOTE), NOTE), "accent")] if reuse else []
        spans.append((pad(kind, KIND if reuse else NOTE + KIND), tone))
        if self.wide:
            spans.append((pad(cut(plain(short_label(last.label)), LABEL), LABEL + 1), "faint"))
        return tuple(spans)

    def live(self, live: list[int]) -> list[Row]:
        """A chart of the live bytes."""
        most = max(live) or 1
        rows = []
        for level in range(LIVE_LINES, 0, -1):
            spans: list[Span] = []
            for step in range(self.steps):
                filled = live[step] / most * 8 * LIVE_LINES - 8 * (level - 1)
                glyph = LEVELS[max(0, min(8, round(filled)))]
                role: Role = "bar-warn" if live[step] == most else "bar"
                spans += [(glyph * (self.cell - 1), role), (" ", "text")]
            name = " live" if level == LIVE_LINES else ""
            gutter: Line = (
                (pad(name, NAME + 1), "dim"),
                (pad_left(bytes_text(int(most * level / LIVE_LINES)), SIZE) + " ", "dim"),
            )
            right: Line = (("peak ", "warn"),) if level == LIVE_LINES else ()
            rows.append(Row(gutter=gutter, body=tuple(spans), right=right))
        return rows


def _role(buffer: Buffer, index: int) -> Role:
    taken = index or buffer.reuses
    return ROLES.get(buffer.kind, "bar-accent" if taken else "bar")


def _inputs(inputs: list[Buffer], key: str, opened: bool) -> Row:
    """The caller owns them, so they are folded."""
    sizes = [buffer.bytes for buffer in inputs]
    known = [size for size in sizes if size is not None]
    total = bytes_text(sum(known)) if len(known) == len(sizes) else "sizes symbolic"
    words = f"{plural(len(inputs), 'input')}, {total}, owned by the caller"
    row = fold_row(key, words, opened)
    return replace(row, gutter=(*row.gutter, *row.body), body=())


def _step_name(view: View, step: str) -> str:
    """`k2 mul, softmax` -> `k2 softmax`."""
    kernel = view.recording.kernels.get(step.partition(" ")[0])
    return view.derived.called.title(kernel) if kernel else step


def _peak(plan: MemoryPlan, live: list[int], names: list[str], width: int) -> list[Row]:
    """The peak, where it is, and what reuse saves."""
    known = all(buffer.bytes is not None for buffer in plan.buffers if buffer.kind != "input")
    note = "" if known else " · symbolic sizes count as 0 here"
    at = plain(names[live.index(max(live))]) if names else ""
    reuse = reuse_of(plan)
    peak = peak_words(plan, reuse)
    rest = wrap(f"planned · peak at {at}{note}", width - cell_len(peak) - 5)
    first: Line = ((" ", "text"), (peak, "strong"), ("   " + rest[0], "dim"))
    return [
        Row(gutter=first),
        *(Row(gutter=((f" {line}", "dim"),)) for line in [*rest[1:], reuse_words(reuse)]),
    ]


def verdict(view: View, width: int) -> list[Row]:
    """The bar below: what the plan decided on the current buffer, and why."""
    plan = plan_of(view)
    buffer = next((b for b in plan.buffers if b.name == view.buffer), None) if plan else None
    if plan is None or buffer is None:
        return []
    decisions = reuse_decisions(view.recording, plan.graph)
    if not buffer.reuses and buffer.name not in decisions:
        buffer = next((b for b in plan.buffers if b.reuses == view.buffer), buffer)
    decided = decisions.get(buffer.name)
    before = next((b for b in plan.buffers if b.name == buffer.reuses), None)
    if before is not None:
        title = f"{buffer.name} takes the memory of {before.name}"
    elif decided is not None:
        title = f"{buffer.name} has memory of its own"
    else:
        title = f"{buffer.name}   {bytes_text(buffer.bytes)}   {buffer.kind}"
    id = decided.id if decided is not None else ""
    return [
        text_row((title, "title"), right=(text(id, "dim"), (" ", "text")), heading=True),
        Row(body=_rule(view, plan, buffer, before, decided)),
        Row(body=_saves(view, plan, buffer, before)),
    ]


def _rule(
    view: View, plan: MemoryPlan, buffer: Buffer, before: Buffer | None, decided: Decided | None
) -> Line:
    if decided is not None and (decided.reason or decided.rule):
        good = decided.choice != "own"
        mark: Span = ("✓ ", "good") if good else ("✗ ", "bad")
        said = f"{decided.rule}   {decided.reason}" if decided.rule else decided.reason
        yours: Span = ("   your choice", "warn") if decided.overridden else ("", "text")
        return (("rule     ", "dim"), mark, text(said), yours)
    if before is None:
        lives = f"{_step(view, plan, buffer.first)} to {_step(view, plan, buffer.last)}"
        return (("lives    ", "dim"), text(f"from {lives}"))
    same = before.bytes == buffer.bytes
    sizes = f"{'same size' if same else 'at most the size'} {bytes_text(before.bytes)}"
    written = "written while it is read, at" if buffer.inplace else "ended before"
    words = f"{before.name} {written} {_step(view, plan, buffer.first)}"
    return (("rule     ", "dim"), ("✓ ", "good"), text(f"{sizes}   "), ("✓ ", "good"), text(words))


def _saves(view: View, plan: MemoryPlan, buffer: Buffer, before: Buffer | None) -> Line:
    if before is None:
        return (
            ("size     ", "dim"),
            text(bytes_text(buffer.bytes)),
            text(f"   {buffer.label}", "dim"),
        )
    live = alive(plan)
    at = _step(view, plan, live.index(max(live)))
    spans: list[Span] = [
        ("saves    ", "dim"),
        text(f"one allocation of {bytes_text(buffer.bytes)}"),
    ]
    if plan.peak_bytes is not None:
        spans += [("; the plan's peak is ", "text"), (bytes_text(plan.peak_bytes), "strong")]
        spans.append(text(f" at {at}", "dim"))
    if plan.without_reuse_bytes is not None and plan.without_reuse_bytes != plan.peak_bytes:
        spans.append((f", {bytes_text(plan.without_reuse_bytes)} without any reuse", "dim"))
    return tuple(spans)


def _step(view: View, plan: MemoryPlan, step: int) -> str:
    name = _step_name(view, plan.steps[step]) if step < len(plan.steps) else ""
    return name or f"step {number(step)}"
