"""What stands around the panes: header, timeline, selection bar."""

from __future__ import annotations

import math
from typing import Literal

from compiler.trace import refs
from compiler.trace.records import Location, Progress
from viewers.labels import kernel_label
from viewers.panes.rows import BLANK, Line, Role, Row, Span, text, width_of
from viewers.panes.view import LANGUAGES, View
from viewers.summary import Piece
from viewers.words import plural, ratio_text, seconds_text

State = Literal["opening", "running", "finished", "incomplete", "failed", "replay"]
STATES: dict[State, tuple[str, Role]] = {
    "opening": ("◌ opening", "dim"),
    "running": ("▸ running", "accent"),
    "finished": ("■ finished", "dim"),
    "incomplete": ("◌ incomplete", "warn"),
    "failed": ("✗ failed", "bad"),
    "replay": ("↺ replay", "dim"),
}


def header(view: View, state: State, width: int, file: str = "") -> Line:
    """One line. On a narrow screen settings go first, then counts; the state never goes."""
    recording = view.recording
    start = recording.start
    name = view.facts.names.short(start.settings.file) if start else file
    left: list[Span] = [("tcw ", "title"), text(name, "strong")]
    settings: list[Span] = []
    if start is not None:
        chosen = start.settings
        engines = list(view.facts.of_engines)
        of = f" {engines.index(view.engine) + 1}/{len(engines)}" if view.engine in engines else ""
        on = chosen.arch or ("cuda" if view.summary.gpu else chosen.device)
        words = [chosen.grad, chosen.engine + of, chosen.mode, on]
        settings = [("  ", "dim"), text(" · ".join(word for word in words if word), "dim")]
    ending: list[Span] = [STATES[state]]
    if state == "running":
        progress = recording.last(Progress)
        if progress is not None:
            seconds = recording.records[-1].at
            activity = f" {progress.stage} {seconds_text(seconds)}"
            ending.append(text(activity, "dim"))
    counts = _counts(view) if recording.records else []
    for parts in ([*settings], [*counts, ("   ", "dim")]), ([], counts), ([], []):
        middle, badges = parts
        used = width_of((*left, *middle, *badges, *ending)) + 4
        if used <= width or not badges:
            gap = max(1, width - 2 - width_of((*left, *middle, *badges, *ending)))
            return ((" ", "text"), *left, *middle, (" " * gap, "text"), *badges, *ending)
    return tuple(left)


def _counts(view: View) -> list[Span]:
    summary = view.summary
    breaks, causes = len(summary.breaks), len(summary.recompiles)
    spans: list[Span] = []
    if breaks:
        word = " break  " if breaks == 1 else " breaks  "
        spans += [(f"✗{breaks}", "bad"), (word, "dim")]
    if causes:
        word = " recompile  " if causes == 1 else " recompiles  "
        spans += [(f"↻{causes}", "warn"), (word, "dim")]
    speed = summary.speed
    if speed is not None:
        won: Role = "text" if speed.in_noise else "good" if speed.speedup >= 1 else "bad"
        note = " in noise " if speed.in_noise else " "
        spans += [(" " + ratio_text(speed.speedup), won), (note, "dim")]
    return [*spans, (" ", "dim")] if spans else []


def timeline(view: View, width: int, reserved: int = 0) -> tuple[Line, Line]:
    """Two lines: a segment per compile, and names below. Widths grow with the root of the time.

    `reserved`: cells at the right of the names that something else needs.
    """
    pieces, sizes, current = _segments(view, width)
    if not pieces:
        return ((" " + "─" * (width - 2), "faint"),), ((" no compile yet", "faint"),)
    above: list[Span] = [(" ", "text")]
    below: list[Span] = [(" ", "text")]
    free = 0
    for index, (piece, size) in enumerate(zip(pieces, sizes, strict=True)):
        here = index == current
        stroke = "━" if index < current else "─"
        role: Role = "dim" if index <= current else "faint"
        first: Span = ("▼", "accent") if here else ("↻", "warn") if piece.recompiles else ("", role)
        last: Span = ("✗", "bad") if piece.cuts else ("", role)
        body = max(0, size - len(first[0]) - len(last[0]))
        above += [first, (stroke * body, role), last, (" ", "text")]
        words = f"{piece.compile_id} {_resumes(piece.resumes_at) or piece.function}"
        start = sum(sizes[:index]) + index
        if start >= free:
            for shown in (words, piece.compile_id, ""):
                fits = start + len(shown) + reserved < width - 1
                if fits and (len(shown) <= size or (here and shown)):
                    break
            if shown:
                below.append((" " * (start - free), "text"))
                below.append(text(shown, "accent" if here else "dim"))
                free = start + len(shown) + 1
                below.append((" ", "text"))
    return tuple(above), tuple(below)


def _segments(view: View, width: int) -> tuple[list[Piece], list[int], int]:
    """The compiles that have room, the cells of each (a blank follows), and the present one.

    Where there are too many, those around the present one are shown.
    """
    pieces = list(view.facts.pieces.values())
    current = next((i for i, p in enumerate(pieces) if p.compile_id == view.compile_id), 0)
    room = width - 2
    most = max(1, room // 3)
    if len(pieces) > most:
        first = max(0, min(current - most // 2, len(pieces) - most))
        pieces, current = pieces[first : first + most], current - first
    weights = [math.sqrt(max(piece.seconds or 0.05, 0.05)) for piece in pieces]
    total = sum(weights) or 1.0
    spare = room - 3 * len(pieces)
    return pieces, [2 + int(spare * weight / total) for weight in weights], current


def _resumes(line: int | None) -> str:
    return f"⤷{line}" if line else ""


def selection(view: View, width: int) -> list[Row]:
    """What the selection is and what it is linked to; empty where nothing is selected."""
    if not view.ref or refs.kind(view.ref) not in ("src", "fx", "ir", "k"):
        return []
    shown = [LANGUAGES[language] for language in view.facts.languages]
    keys: Line = (("( ) ", "key"), (" · ".join(shown) + " ", "dim")) if len(shown) > 1 else ()
    title = Row(body=(text(_title(view), "strong"),), right=keys, heading=True)
    return [title, Row(body=_counterparts(view)), _inferred(view)]


def _title(view: View) -> str:
    ref, names = view.ref, view.facts.names
    if refs.kind(ref) == "src":
        file, line = refs.split_source(ref)
        return f"src:{names.place(file, line)}"
    if refs.kind(ref) == "k":
        kernel = view.recording.kernels.get(refs.split_kernel(ref)[0])
        return f"{ref}   {kernel.label}" if kernel is not None else ref
    return ref


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
            spans.append(text(f"{mark}{view.facts.names.place(file, line)}  ", "accent"))
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
        spans.append(text(", ".join(f"{k.id} {kernel_label(k)}" for k in kernels[:4]), "dim"))
        if len(kernels) > 4:
            spans.append((f" and {len(kernels) - 4} more", "dim"))
    if not spans:
        spans.append((_why_unlinked(view), "dim"))
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
    lines = sorted({_line(node.location) for node in made if node.location})
    by = f", made by {makers}" if makers else ""
    words = f"≈{lines[0] if lines else '?'}  "
    return Row(
        body=(
            text(words, "warn"),
            text(f"line inferred: torch recorded none for {plural(len(made), 'node')}{by}", "dim"),
        )
    )


def _line(location: Location | None) -> int:
    return location.line if location else 0


def at(view: View, width: int, x: int) -> str:
    """The compile whose segment of the timeline is at cell `x`."""
    edge = 1
    pieces, sizes, _ = _segments(view, width)
    for piece, size in zip(pieces, sizes, strict=True):
        edge += size + 1
        if x < edge:
            return piece.compile_id
    return ""
