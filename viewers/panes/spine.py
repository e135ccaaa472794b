"""The spine: input set, compile, stage. Eleven cells show ids and badges, thirty-two the rest."""

from __future__ import annotations

from itertools import islice

from tcw.compiler.trace.records import MemoryPlan, Partition
from tcw.viewers.kit.cells import pad
from tcw.viewers.kit.spans import Line, Span, text
from tcw.viewers.panes import profiled
from tcw.viewers.panes.rows import Content, Row
from tcw.viewers.panes.targets import ToCompile, ToStage
from tcw.viewers.panes.view import LANGUAGES, View
from tcw.viewers.summary.calls import ModelCall, Piece
from tcw.viewers.words import bytes_text, number, plural, seconds_text

WIDE = 24
"""Stages and times are shown from this width on."""


def content(view: View, width: int) -> Content:
    rows: list[Row] = []
    for call in view.summary.calls:
        rows.append(_call(view, call, width))
        for piece in call.pieces:
            rows.extend(_piece(view, piece, width))
        if call.hits and not call.pieces and width >= WIDE:
            rows.append(
                Row(body=(("   ", "text"), text(f"reused {', '.join(call.hits)}", "faint")))
            )
    if not rows:
        words = " no call yet" if view.live else " no call"
        rows = [Row(body=((words if width >= len(words) else " no call", "faint"),))]
    return Content("calls", rows=rows, start=str(ToCompile(view.compile_id)), tracks=True)


def call_name(view: View, call: ModelCall) -> str:
    """`call 2`; `timing` or `outside` for what was compiled outside all calls. A model's calls
    are the recording's own, so that it compiles outside them only when timed."""
    if call.number:
        return f"call {call.number}"
    return "timing" if any(one.number for one in view.summary.calls) else "outside"


def _call(view: View, call: ModelCall, width: int) -> Row:
    spans: list[Span] = [(" ", "text"), (call_name(view, call), "strong")]
    if width >= WIDE:
        spans.append(text("  " + "  ".join(_values(call)), "dim"))
    elif call.hits and not call.pieces:
        spans.append((" ✓", "dim"))
    return Row(body=tuple(spans))


def _values(call: ModelCall) -> list[str]:
    """`4×128×256`, `0.125`; from the second call on, what changed: `temperature 0.25`."""
    if call.changed:
        return [f"{name} {value}" for name, value in islice(call.changed.items(), 2)]
    return list(islice(call.arguments.values(), 3))


def _piece(view: View, piece: Piece, width: int) -> list[Row]:
    current = piece.compile_id == view.compile_id
    badge: list[Span] = []
    if piece.recompiles:
        badge.append(("↻", "warn"))
    if piece.cuts and not (piece.recompiles and width < WIDE):
        badge.append(("✗", "bad"))
    if piece.status in ("failed", "skipped"):
        badge = [(piece.status if width >= WIDE else "✗", "bad")]
    target = ToCompile(piece.compile_id)
    if width < WIDE:
        body: Line = (
            ("  ", "text"),
            text(pad(piece.compile_id, 4), "accent" if current else "dim"),
        )
        return [Row(body=(*body, (" ", "text"), *badge), at=target)]
    resumes = f"→ line {piece.resumes_at}" if piece.resumes_at else piece.function
    mark = "▾ " if current else "▸ "
    if piece.recompiles and piece.seconds is not None:
        badge.append((" " + seconds_text(piece.seconds), "warn"))
    head = Row(
        body=(
            (" ", "text"),
            (mark, "faint"),
            text(piece.compile_id + " ", "accent"),
            text(resumes, "text"),
        ),
        right=(*badge, (" ", "text")),
        at=target,
    )
    return [head, *(_stages(view, piece) if current else [])]


def _stages(view: View, piece: Piece) -> list[Row]:
    recording = view.recording
    ended = piece.status != "open"
    stages = [("capture", plural(piece.ops, "op") if piece.ops or ended else "?")]
    known = piece.guards or ended
    stages.append(("guards", number(piece.guards) if known else "?"))
    for split in recording.all(Partition):
        if split.compile_id == piece.compile_id:
            saved = sum(value.choice == "saved" for value in split.values)
            stages.append(("autograd", f"{saved} saved"))
    graph = view.loop_graph()
    for fusion in view.summary.fusion.graphs:
        if fusion.graph == graph:
            after = "?" if fusion.groups is None else str(fusion.groups)
            stages.append(("fusion", f"{fusion.nodes} → {after}"))
    for plan in recording.all(MemoryPlan):
        if plan.graph == graph:
            stages.append(("memory", f"{bytes_text(plan.peak_bytes)} peak"))
    kernels = view.recording.kernels_of.get(piece.compile_id, [])
    own = [kernel for kernel in kernels if not kernel.predicted]
    if own:
        languages = {LANGUAGES["cpp"] if k.language == "cpp" else k.language for k in own}
        written = sum(kernel.generated for kernel in own)
        word = "C++" if "C++" in languages else "Triton" if "triton" in languages else "calls"
        stages.append(("kernels", f"{written or len(own)} {word}"))
    stages += _profiled(view, piece)
    return [
        Row(
            body=(("     ", "text"), (name, "dim")),
            right=(text(value, "dim"), (" ", "text")),
            at=ToStage(piece.compile_id, name),
        )
        for name, value in stages
    ]


def _profiled(view: View, piece: Piece) -> list[tuple[str, str]]:
    """The time of the profiled call, and in training of each of its phases."""
    profile = view.derived.profile
    if profile is None or piece is not next(iter(view.derived.pieces.values()), None):
        return []
    stages = [("profile", seconds_text(profile.head.compiled.median))]
    for phase in profiled.phases_of(view):
        sides = {one.side: one.measured for one in profile.accounts if one.phase == phase}
        took = sides.get("compiled")
        stages.append((f"  {phase}", seconds_text(took.median) if took else "?"))
    return stages
