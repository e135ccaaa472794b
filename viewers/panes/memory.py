"""The memory plan of one graph: a bar per buffer over the steps, and how much is live."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len

from compiler.trace.records import Buffer, MemoryPlan
from viewers.labels import kernel_label, short_label
from viewers.panes.rows import (
    BLANK,
    Content,
    Line,
    Role,
    Row,
    Span,
    empty,
    pad,
    pad_left,
    text,
    wrap,
)
from viewers.panes.view import View
from viewers.places import cut, keep_end
from viewers.plain import plain
from viewers.summary import peak_words, reuse_of, reuse_words
from viewers.words import bytes_text, plural

ROLES: dict[str, Role] = {"saved": "bar-hot", "output": "bar-hot"}
LEVELS = " ▁▂▃▄▅▆▇█"
NAME, SIZE, TAIL = 12, 8, 24
NAMED = 5
"""Cells of a step from which on it is named by what runs, not by its kernel's id."""


def content(view: View, width: int) -> Content:
    graph = view.loop_graph()
    plan = next((p for p in reversed(view.recording.all(MemoryPlan)) if p.graph == graph), None)
    subject = graph.removesuffix("/lowered") or view.compile_id
    if plan is None:
        why = f"no memory plan of {subject or 'this recording'} was recorded"
        return Content("memory", subject, rows=empty(width, why, view.not_reached("memory")))
    steps = len(plan.steps) or 1
    room = width - NAME - SIZE - TAIL - 2
    cell = max(1, min(8, room // steps))
    shown = min(steps, room // cell)
    buffers = sorted(plan.buffers, key=_order(view))
    largest = max((buffer.bytes or 0 for buffer in plan.buffers), default=1) or 1
    inputs = [buffer for buffer in buffers if buffer.kind == "input"]
    names = [_step_name(view, step) for step in plan.steps]
    live = _alive(plan)
    rows = [*_peak(plan, live, names, width), BLANK, _head(names, cell, shown)]
    if inputs:
        key = f"{graph}:inputs"
        opened = key in view.unfolded
        rows.append(_inputs(inputs, key, opened))
        rows.extend(_buffer(buffer, largest, cell, shown) for buffer in inputs if opened)
    own = (buffer for buffer in buffers if buffer.kind != "input")
    rows.extend(_buffer(buffer, largest, cell, shown) for buffer in own)
    rows += [BLANK, *_live(live, cell, shown)]
    words: list[Span] = [("■ ", "hot"), ("kept for backward or output  ", "dim")]
    words += [("■ ", "accent"), ("takes over another's memory", "dim")]
    if shown < steps:
        words.append((f"  steps 1–{shown} of {steps}", "warn"))
    return Content("memory", subject, tuple(words), rows)


def _inputs(inputs: list[Buffer], key: str, opened: bool) -> Row:
    """The caller owns them, so they are folded."""
    sizes = [buffer.bytes for buffer in inputs]
    known = [size for size in sizes if size is not None]
    total = bytes_text(sum(known)) if len(known) == len(sizes) else "sizes symbolic"
    words = (
        f" {'▾' if opened else '▸'} {plural(len(inputs), 'input')}, {total}, owned by the caller"
    )
    return Row(body=((words, "faint"),), key=f"fold:{key}", opens=f"fold:{key}")


def _order(view: View) -> Callable[[Buffer], tuple[int, int]]:
    if view.order == "size":
        return lambda buffer: (-(buffer.bytes or 0), buffer.first)
    if view.order == "life":
        return lambda buffer: (buffer.first - buffer.last, buffer.first)
    return lambda buffer: (buffer.first, buffer.last)


def _step_name(view: View, step: str) -> str:
    """`k2 mul, softmax` -> `k2 softmax`."""
    kernel = view.recording.kernels.get(step.partition(" ")[0])
    return f"{kernel.id} {kernel_label(kernel)}" if kernel else step


def _head(names: list[str], cell: int, shown: int) -> Row:
    spans: list[Span] = [(pad(" buffer", NAME + 1), "dim"), (pad_left("size ", SIZE + 1), "dim")]
    for name in names[:shown]:
        kernel, _, label = name.partition(" ")
        words = plain(label if label and cell >= NAMED else kernel)
        spans.append((pad(cut(words, cell - 1), cell), "dim"))
    return Row(body=tuple(spans))


def _buffer(buffer: Buffer, largest: int, cell: int, shown: int) -> Row:
    """The height of the bar is the size's class: eighths of the largest, at least one."""
    part = (buffer.bytes or 0) / largest
    glyph = "?" if buffer.bytes is None else LEVELS[max(1, min(8, round(8 * part)))]
    role = ROLES.get(buffer.kind, "bar")
    if buffer.reuses and buffer.kind == "temporary":
        role = "bar-accent"
    last = min(buffer.last, shown - 1)
    size = max(0, (last - buffer.first + 1) * cell - (1 if cell > 1 else 0))
    note = f"← {buffer.reuses}" if buffer.reuses else buffer.kind
    tone: Role = "accent" if buffer.reuses else "hot" if buffer.kind in ROLES else "faint"
    return Row(
        body=(
            text(pad(" " + keep_end(buffer.name, NAME - 1), NAME + 1)),
            (
                pad_left(bytes_text(buffer.bytes) if buffer.bytes is not None else "?", SIZE) + " ",
                "dim",
            ),
            (" " * (buffer.first * cell), "text"),
            (glyph * size, role),
            (" " * max(0, (shown - last - 1) * cell + 1), "text"),
            text(f"{note}  " if buffer.kind != "temporary" or buffer.reuses else "", tone),
        ),
        right=(text(cut(plain(short_label(buffer.label)), 12), "faint"), (" ", "text")),
        key=f"buffer:{buffer.name}",
        copies=buffer.name,
    )


def _alive(plan: MemoryPlan) -> list[int]:
    """Bytes alive at each step; a buffer whose memory is taken over counts until it is."""
    live = [0] * max(1, len(plan.steps))
    for buffer in plan.buffers:
        if buffer.kind == "input":
            continue
        for step in range(buffer.first, min(buffer.last + 1, len(live))):
            live[step] += buffer.bytes or 0
    for buffer in plan.buffers:
        taken = next((b for b in plan.buffers if b.name == buffer.reuses), None)
        if taken is not None and taken.last >= buffer.first:
            live[buffer.first] -= taken.bytes or 0
    return live


def _peak(plan: MemoryPlan, live: list[int], names: list[str], width: int) -> list[Row]:
    """The answer: how much at most, where, and what reuse saves."""
    known = all(buffer.bytes is not None for buffer in plan.buffers if buffer.kind != "input")
    note = "" if known else "   sizes that are symbolic count as nothing here"
    at = plain(names[live.index(max(live))]) if names else ""
    reuse = reuse_of(plan)
    peak = peak_words(plan.peak_bytes, plan.without_reuse_bytes, reuse)
    rest = wrap(f"as planned   most alive at {at}{note}", width - cell_len(peak) - 5)
    first: Line = ((" ", "text"), (peak, "strong"), ("   " + rest[0], "dim"))
    return [
        Row(body=first),
        *(Row(body=((f" {line}", "dim"),)) for line in [*rest[1:], reuse_words(reuse)]),
    ]


def _live(live: list[int], cell: int, shown: int) -> list[Row]:
    """A chart of what is alive, three lines high."""
    most = max(live) or 1
    rows = []
    for level in (3, 2, 1):
        spans: list[Span] = []
        for step in range(shown):
            filled = live[step] / most * 24 - 8 * (level - 1)
            glyph = LEVELS[max(0, min(8, round(filled)))]
            role: Role = "bar-warn" if live[step] == most else "bar"
            spans += [(glyph * max(1, cell - 1), role), (" " * (1 if cell > 1 else 0), "text")]
        name = " live" if level == 3 else ""
        lead: Line = (
            (pad(name, NAME + 1), "dim"),
            (pad_left(bytes_text(int(most * level / 3)), SIZE) + " ", "dim"),
        )
        rows.append(Row(body=(*lead, *spans)))
    return rows
