"""What surrounds the panes: header, spine, and the bar below with the selection or the decision."""

from __future__ import annotations

from itertools import islice
from typing import Literal

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import MemoryPlan, Partition, Step
from tcw.viewers.kit.cells import pad
from tcw.viewers.kit.spans import Line, Role, Span, text, width_of
from tcw.viewers.panes import (
    autograd,
    chrome,
    decision_bar,
    fusion,
    memory_chart,
    profiled,
    waterfall,
)
from tcw.viewers.panes.rows import BLANK, Content, Row, text_row
from tcw.viewers.panes.targets import ToCompile, ToStage
from tcw.viewers.panes.view import LANGUAGES, View
from tcw.viewers.plain import plain
from tcw.viewers.summary.calls import ModelCall, Piece
from tcw.viewers.summary.profile.profile_verdict import in_noise
from tcw.viewers.summary.verdict import doing, means_nothing, ratio_known
from tcw.viewers.words import bytes_text, number, plural, ratio_text, seconds_text

State = Literal["opening", "running", "waiting", "finished", "incomplete", "failed", "replay"]
STATES: dict[State, tuple[str, Role]] = {
    "opening": ("◌ opening", "dim"),
    "running": ("▸ running", "accent"),
    "waiting": (" ◆ waiting ", "turn"),
    "finished": ("■ finished", "dim"),
    "incomplete": ("◌ incomplete", "warn"),
    "failed": ("✗ failed", "bad"),
    "replay": ("↺ replay", "dim"),
}


def header(
    view: View, state: State, width: int, file: str = "", seconds: float | None = None
) -> Line:
    """One line. A narrow screen drops settings first, then counts, and never the state.

    `seconds`: since a driven compile began; None for the time of the last record.
    """
    recording = view.recording
    start = recording.start
    name = view.derived.names.short(start.settings.file) if start else file
    left: list[Span] = [("tcw ", "title"), text(name, "strong")]
    if start is not None and start.rank is not None:
        left.append((f" rank {start.rank}", "strong"))
    settings: list[Span] = []
    if start is not None:
        chosen = start.settings
        engines = list(view.derived.of_engines)
        of = f" {engines.index(view.engine) + 1}/{len(engines)}" if view.engine in engines else ""
        on = chosen.arch or ("cuda" if view.summary.gpu else chosen.device)
        words = [chosen.grad, chosen.engine + of, chosen.mode, on]
        if view.summary.not_in_log:
            words = ["a torch log", view.summary.gpu and on]
        elif chosen.program or view.summary.script:
            words = ["program" if chosen.program else "script", on]
        settings = [("  ", "dim"), text(" · ".join(word for word in words if word), "dim")]
    ending: list[Span] = [STATES[state]]
    if state == "running":
        now = doing(recording)
        if now is not None:
            seconds = seconds if seconds is not None else recording.records[-1].at
            activity = f" {now.stage} {seconds_text(seconds)}"
            ending.append(text(activity, "dim"))
    where = standing_at(view)
    counts = _counts(view) if recording.records and not where else []
    counts += [*_driven_counts(view), (where, "dim")]
    for parts in ([*settings], [*counts, ("   ", "dim")]), ([], counts), ([], []):
        middle, badges = parts
        used = width_of((*left, *middle, *badges, *ending)) + 4
        if used <= width or not badges:
            gap = max(1, width - 2 - width_of((*left, *middle, *badges, *ending)))
            return ((" ", "text"), *left, *middle, (" " * gap, "text"), *badges, *ending)
    return tuple(left)


def standing_at(view: View) -> str:
    """`step 157`, `decision 4`: where the compile is stopped; "" if it runs."""
    waiting = view.waiting
    if waiting is None or waiting.kind == "end":
        return ""
    if waiting.decision:
        return f"decision {decision_bar.count(view)}"
    step = view.recording.last(Step)
    if waiting.kind == "step" and step is not None:
        return f"step {number(step.step + 1)}"
    if waiting.kind in ("graph", "pass"):
        return plain(f"{waiting.kind} {waiting.graph or waiting.compile_id}".strip())
    if waiting.kind == "breakpoint":
        return f"breakpoint {waiting.breakpoint}"
    return plain(waiting.stage if waiting.kind == "stage" else waiting.why or waiting.kind)


def _driven_counts(view: View) -> list[Span]:
    spans: list[Span] = []
    runs = [number for _, number in view.track.runs]
    if len(runs) > 1 and view.run in runs:
        spans.append((f"run {runs.index(view.run) + 1} of {len(runs)}   ", "dim"))
    if view.overrides:
        spans += [("* ", "accent"), (plural(len(view.overrides), "override") + "   ", "dim")]
    return spans


def _counts(view: View) -> list[Span]:
    summary = view.summary
    breaks = len(summary.breaks)
    recompiles = sum(len(cause.frames) for cause in summary.recompiles)
    spans: list[Span] = []
    if breaks:
        word = " break  " if breaks == 1 else " breaks  "
        spans += [(f"✗{breaks}", "bad"), (word, "dim")]
    if recompiles:
        word = " recompile  " if recompiles == 1 else " recompiles  "
        spans += [(f"↻{recompiles}", "warn"), (word, "dim")]
    speed = summary.speed
    if speed is not None and means_nothing(speed):
        pass  # the overview says why
    elif speed is not None:
        spans += _won(speed.speedup, speed.in_noise, speed.noise)
    elif view.derived.profile is not None:
        head = view.derived.profile.head
        spans += _won(head.speedup, in_noise(head), head.noise)
    return [*spans, (" ", "dim")] if spans else []


def _won(speedup: float, noisy: bool, noise: float) -> list[Span]:
    if noisy:
        return [(" ≈ same", "text"), (f" ({ratio_text(speedup)}) ", "dim")]
    role: Role = "good" if speedup >= 1 else "bad"
    return [(f" {ratio_known(speedup, noise)} ", role)]


def selection(view: View, width: int) -> list[Row]:
    """The selection and its counterparts; empty if nothing is selected."""
    if not view.ref or refs.kind(view.ref) not in ("src", "fx", "ir", "k"):
        return []
    shown = [LANGUAGES[language] for language in view.derived.languages]
    keys: Line = (("( ) ", "key"), (" · ".join(shown) + " ", "dim")) if len(shown) > 1 else ()
    if view.in_page:
        keys = ()
    title = text_row((_title(view), "strong"), right=keys, heading=True)
    return [title, Row(body=_counterparts(view)), _inferred(view)]


def _title(view: View) -> str:
    ref, names = view.ref, view.derived.names
    if refs.kind(ref) == "src":
        file, line = refs.split_source(ref)
        return names.place(file, line)
    if refs.kind(ref) == "k":
        name, row = refs.split_kernel(ref)
        kernel = view.recording.kernels.get(name)
        at = f", line {row}" if row is not None else ""
        title = view.derived.called.title(kernel) if kernel is not None else name
        return f"{title}{at}   {kernel.label if kernel is not None else ''}".rstrip()
    graph, node = refs.split_node(ref)
    return f"{node}   of {graph}"


def _counterparts(view: View) -> Line:
    graph = view.graph()
    nodes = []
    if graph is not None:
        wanted = {refs.node(graph.id, node.name) for node in graph.nodes}
        nodes = [ref for ref in view.lit if ref in wanted]
    kernels = [kernel for kernel in view.kernels() if refs.kernel(kernel.id) in view.lit]
    spans: list[Span] = []
    if refs.kind(view.ref) != "src":
        places = sorted(refs.split_source(ref) for ref in view.lit if refs.kind(ref) == "src")
        if places:
            file, line = places[0]
            source = view.recording.line(file, line).strip()
            quality = view.lit[refs.source(file, line)]
            mark = "≈ " if quality == "inferred" else ""
            spans.append(text(f"{mark}{view.derived.names.place(file, line)}  ", "accent"))
            spans.append(text(f"{source}  ", "text"))
            if len(places) > 1:
                others = ", ".join(str(line) for _, line in places[1:])
                spans.append(text(f"and {others}  ", "dim"))
        else:
            spans.append(("no source line is known for it  ", "dim"))
    if nodes:
        spans.append((plural(len(nodes), "node"), "text"))
    if kernels:
        spans.append((" → " if nodes else "", "dim"))
        spans.append((plural(len(kernels), "kernel") + " ", "text"))
        spans.append(text(" · ".join(view.derived.called.title(k) for k in kernels[:4]), "dim"))
        if len(kernels) > 4:
            spans.append((f" and {len(kernels) - 4} more", "dim"))
    if not spans:
        spans.append(text(_why_unlinked(view), "dim"))
    return tuple(spans)


def _why_unlinked(view: View) -> str:
    for site in view.summary.breaks:
        if site.place.ref == view.ref:
            return f"left to Python: {site.title} {site.gb}".rstrip()
    return "no graph has a node of it"


def _inferred(view: View) -> Row:
    graph = view.graph()
    if graph is None:
        return BLANK
    made = [
        node
        for node in graph.nodes
        if node.inferred
        and (refs.node(graph.id, node.name) in view.lit or view.ref.endswith(node.name))
    ]
    if not made:
        return BLANK
    makers = ", ".join(dict.fromkeys(node.made_by for node in made if node.made_by))
    lines = sorted({node.location.line for node in made if node.location})
    by = f", made by {makers}" if makers else ""
    words = f"≈{lines[0] if lines else '?'}  "
    return text_row(
        (words, "warn"),
        (f"line inferred: torch recorded none for {plural(len(made), 'node')}{by}", "dim"),
    )


def rows(view: View, arrangement: str, width: int) -> list[Row]:
    """The decision that waits, else the selection."""
    decision = decision_bar.rows(view, width)
    if decision:
        return decision
    if arrangement == "source":
        return chrome.selection(view, width)
    if arrangement == "fusion":
        return fusion.verdict(view, width)
    if arrangement in ("profile", "region"):
        return waterfall.selection(view, width)
    if arrangement == "memory":
        return memory_chart.verdict(view, width)
    if arrangement == "autograd":
        return autograd.reason(view, width)
    return []


WIDE = 24
"""Stages and times are shown from this width on."""


def spine(view: View, width: int) -> Content:
    rows: list[Row] = []
    for call in view.summary.calls:
        rows.append(_call(view, call, width))
        for piece in call.pieces:
            rows.extend(_piece(view, piece, width))
        if call.hits and not call.pieces and width >= WIDE:
            rows.append(text_row("   ", (f"reused {', '.join(call.hits)}", "faint")))
    if not rows:
        words = " no call yet" if view.live else " no call"
        rows = [text_row((words if width >= len(words) else " no call", "faint"))]
    return Content("calls", rows=rows, start=str(ToCompile(view.compile_id)), tracks=True)


def call_name(view: View, call: ModelCall) -> str:
    """`call 2`; `timing` or `outside` for what was compiled outside all calls. A model's calls
    are the recording's own, so that it compiles outside them only when timed."""
    if call.number:
        return f"call {call.number}"
    return "timing" if any(model_call.number for model_call in view.summary.calls) else "outside"


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
        return [text_row(*body, " ", *badge, at=target)]
    resumes = f"→ line {piece.resumes_at}" if piece.resumes_at else piece.function
    mark = "▾ " if current else "▸ "
    if piece.recompiles and piece.seconds is not None:
        badge.append((" " + seconds_text(piece.seconds), "warn"))
    head = text_row(
        " ",
        (mark, "faint"),
        (piece.compile_id + " ", "accent"),
        resumes,
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
    for fused in view.summary.fusion.graphs:
        if fused.graph == graph:
            after = "?" if fused.groups is None else str(fused.groups)
            stages.append(("fusion", f"{fused.nodes} → {after}"))
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
        text_row(
            "     ",
            (name, "dim"),
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
        sides = {
            account.side: account.measured for account in profile.accounts if account.phase == phase
        }
        took = sides.get("compiled")
        stages.append((f"  {phase}", seconds_text(took.median) if took else "?"))
    return stages
