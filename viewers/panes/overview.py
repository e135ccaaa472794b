"""The verdict, and where one call was cut into graphs."""

from __future__ import annotations

from rich.cells import cell_len

from tcw.viewers.kit.cells import cut, pad, wrap
from tcw.viewers.kit.colours import TONES
from tcw.viewers.kit.figures import cells_of
from tcw.viewers.kit.spans import Line, Span, text, width_of
from tcw.viewers.losses import losses_sentences
from tcw.viewers.panes.rows import BLANK, Content, Row, prose_rows, text_row
from tcw.viewers.panes.targets import ToBreak, ToCompile, ToView
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary import Summary
from tcw.viewers.summary.calls import Cut, ModelCall, Piece
from tcw.viewers.summary.findings import crossing_text
from tcw.viewers.summary.numerics import numerics_words
from tcw.viewers.summary.verdict import VerdictDetail, doing, last_words
from tcw.viewers.tables.engine_lines import verdict_line
from tcw.viewers.tables.findings import glyph_of
from tcw.viewers.words import NOT_MEASURED, numbers_text, plural, seconds_text

BAR = 18
LABEL = 28
"""Cells of a function's name that are shown in a narrow pane."""
FACTS = 40
"""Cells of what is said of a graph, with the gaps."""
NARROW = 90
"""Below this width unnecessary blank rows are left out."""
MESSAGE_LINES = 6
"""Lines of a failure's message that are shown here; its place is what matters."""


def content(view: View, width: int) -> Content:
    summary = view.summary
    rows = [
        BLANK,
        *_fitted(_verdict(view), width),
        *_losses(view, width),
        *(_totals(summary, width) if summary.calls else []),
        *_engines(view),
        *_profile(view, width),
        BLANK,
    ]
    if summary.failure is not None:
        rows[-1:] = _failure(view, width)
    if summary.cut is not None:
        rows += [*_cut(view, summary.cut, width), BLANK]
    if width < NARROW:
        rows = _dense(rows)
    return Content("overview", rows=rows, still=True)


def _losses(view: View, width: int) -> list[Row]:
    """What the trace, and so the figures, lack."""
    sentences = losses_sentences(view.derived.trace)
    return [row for sentence in sentences for row in prose_rows(sentence, width, "warn")]


def _engines(view: View) -> list[Row]:
    """How the two engines compare, if there are two."""
    comparison = view.derived.comparison
    if comparison is None:
        return []
    body: Line = ((" ", "text"), *verdict_line(comparison).spans)
    return [Row(body=body, key="engines", opens=ToView("engines"))]


def _profile(view: View, width: int) -> list[Row]:
    """The first finding of the profile, if a call was profiled."""
    profile = view.derived.profile
    if profile is None:
        return []
    key = "profile"
    if not profile.causes:
        words = f"profile: {profile.verdict.headline[:1].lower()}{profile.verdict.headline[1:]}"
        return [
            text_row((" · ", "dim"), words, right=_opens(view), key=key, opens=ToView("profile"))
        ]
    first = profile.causes[0]
    glyph, role = glyph_of(first)
    cost = first.cost
    place = ""
    if first.place is not None:
        place = f"   {view.derived.names.place(first.place.file, first.place.line)}"
    room = (
        width - cell_len(cost) - cell_len(place) - cell_len("".join(w for w, _ in _opens(view))) - 8
    )
    body: Line = (
        (f" {glyph} ", role),
        (f"{cost}  ", role),
        text(cut(plain(first.title), max(12, room)), "strong"),
        text(place, "dim"),
    )
    return [
        Row(
            body=body,
            right=_opens(view),
            key=key,
            opens=ToView("profile"),
            selects=first.place.ref if first.place is not None else "",
        )
    ]


def _opens(view: View) -> Line:
    return (("⏎" if view.in_page else "V", "key"), (" profile ", "dim"))


def _dense(rows: list[Row]) -> list[Row]:
    """Only one blank row, before how the model is cut: a narrow screen is a low one."""
    kept = [row for row in rows if row is not BLANK]
    place = next((i for i, row in enumerate(kept) if row.heading), len(kept))
    return [*kept[:place], *([BLANK] if 0 < place < len(kept) else []), *kept[place:]]


def _fitted(line: Line, width: int) -> list[Row]:
    """A headline and its numbers, which go below it if they would be cut."""
    head, *rest = line
    if not rest or width_of(line) + 2 <= width:
        return [text_row(" ", *line)]
    detail = "".join(words for words, _ in rest).strip().replace("   ", " · ")
    return [
        *prose_rows(head[0], width, head[1]),
        *prose_rows(detail, width, rest[0][1]),
    ]


def _verdict(view: View) -> Line:
    """The verdict; during the recording, what it is about."""
    verdict = view.summary.verdict
    now = doing(view.recording)
    if view.live and not view.recording.records:
        return (("Reading", "accent"), ("   no record yet", "dim"))
    if view.live and view.summary.speed is None and verdict.tone == "neutral":
        words = now.text if now is not None else "starting"
        return (("Recording", "accent"), text(f"   {words}", "dim"))
    if view.recording.end is None and not view.live and view.summary.speed is None:
        if view.over:
            return ((f"Speed {NOT_MEASURED}", "strong"), ("   the run is over", "dim"))
        return _unfinished(view)
    profile = view.derived.profile
    if view.summary.speed is None and verdict.tone == "neutral" and profile is not None:
        profile_verdict = profile.verdict
        return (
            text(profile_verdict.headline, TONES[profile_verdict.tone]),
            text("   " + _detail(profile_verdict.detail), "dim"),
        )
    detail = text("   " + _detail(verdict.detail), "dim")
    return (text(verdict.headline, TONES[verdict.tone]), detail)


def _unfinished(view: View) -> Line:
    """What a recording was doing when it was cut off."""
    if not view.recording.records:
        return (("Nothing was recorded", "strong"), ("   the file has no record", "dim"))
    now = doing(view.recording)
    seconds = seconds_text(view.recording.records[-1].at)
    stage = f" in {now.stage}" if now is not None else ""
    if view.playhead:
        words = f"The recording as it was{stage} after {seconds}"
        return (text(words, "strong"), ("   end goes back to now", "dim"))
    note = "   what follows is what was written until then"
    return (text(f"Cut off{stage} after {seconds}", "strong"), (note, "dim"))


def _detail(detail: VerdictDetail) -> str:
    return "   ".join(filter(None, (" → ".join(detail.sides), *detail.more)))


def _totals(summary: Summary, width: int) -> list[Row]:
    parts = []
    calls = [call for call in summary.calls if call.number]
    words = plural(len(calls), "call")
    seconds = summary.recompile_seconds
    if seconds is not None:
        again = numbers_text(n for cause in summary.recompiles for n in cause.calls if n)
        word = "call" if again.isdigit() else "calls"
        where = [f"on {word} {again.replace(', ', ' and ')}"] if again else []
        if any(cause.repeated for cause in summary.recompiles):
            where.append("in the timed calls")
        words += f": {seconds_text(seconds)} of recompiling {' and '.join(where)}".rstrip()
    parts.append(words)
    if summary.numerics is not None:
        parts.append(numerics_words(summary.numerics))
    parts.append(
        f"{plural(summary.compiles, 'compile')}, {plural(summary.kernels.count, 'kernel')}"
    )
    lines = ["   ·   ".join(parts)]
    if cell_len(lines[0]) + 2 > width:
        lines = parts[:1]
        for part in parts[1:]:
            joined = f"{lines[-1]} · {part}"
            if cell_len(joined) + 2 <= width:
                lines[-1] = joined
            else:
                lines.append(part)
    return [text_row((f" {line}", "dim")) for line in lines]


def _failure(view: View, width: int) -> list[Row]:
    failure = view.summary.failure
    assert failure is not None
    blame = {
        True: "Eager fails too: torch.compile is not the cause",
        False: "Eager runs: torch.compile is the cause",
        None: "",
    }[failure.eager_fails]
    rows = [BLANK]
    if failure.location is not None:
        place = view.derived.names.place(failure.location.file, failure.location.line)
        line = failure.source_line.strip()
        rows.append(
            text_row(
                " ",
                (f"{place}  ", "dim"),
                line,
                ref=f"src:{failure.location.file}:{failure.location.line}",
                key="failure",
            )
        )
    said = f"{failure.type}: {failure.message}" if failure.message else failure.type
    lines = [line for part in said.split("\n") if part.strip() for line in wrap(part, width - 2)]
    first, *rest = lines[:MESSAGE_LINES] or [""]
    rows.append(text_row(" ", (first, "bad")))
    rows.extend(text_row(" ", line) for line in rest)
    if (left := len(lines) - MESSAGE_LINES) > 0:
        words = f" … {plural(left, 'more line')}, in the output"
        rows.append(text_row((words, "dim"), key="more", opens=ToView("output")))
    rows.extend(
        text_row(" ", (words, "dim"))
        for words in (last_words(view.recording, failure), blame, failure.hint)
        if words
    )
    return [*rows, BLANK]


def _cut(view: View, call: ModelCall, width: int) -> list[Row]:
    pieces = [piece for piece in call.pieces if not piece.recompiles]
    pieces = pieces or list(call.pieces)
    count = sum(piece.ops > 0 for piece in pieces)
    if count > 1:
        headline = f"One forward pass is cut into {plural(count, 'graph')}"
    elif count:
        headline = "One forward pass is one graph"
    elif any(piece.status == "open" for piece in pieces):
        headline = "No graph is captured yet" if view.live else "No graph had been captured"
    else:
        headline = "No graph was captured"
    rows = [text_row(" ", (headline, "strong"), heading=True), BLANK]
    most = max((piece.ops for piece in pieces), default=1) or 1
    label = max((cell_len(plain(_label(piece))) for piece in pieces), default=8)
    ids = max((cell_len(plain(piece.compile_id)) for piece in pieces), default=0)
    label = min(label, max(LABEL, width - ids - BAR - FACTS))
    for piece in pieces:
        rows.append(_bar(piece, most, ids, label))
        rows.extend(_break(view, one) for one in piece.cuts)
    return rows


def _label(piece: Piece) -> str:
    return f"→ {piece.resumes_at}" if piece.resumes_at else piece.function


def _bar(piece: Piece, most: int, ids: int, label: int) -> Row:
    size = max(1, cells_of(piece.ops, most, BAR)) if piece.ops else 0
    name = _label(piece)
    if not piece.ops and piece.status == "open":
        facts = " its capture has not ended"
    else:
        facts = f" {plural(piece.ops, 'op')}"
    if piece.guards or piece.status != "open":
        facts += f" · {plural(piece.guards, 'guard')}"
    if piece.status not in ("compiled", "open"):
        facts += f" · {piece.status}"
    return text_row(
        " ",
        (pad(plain(piece.compile_id), ids + 1), "accent"),
        (pad(cut(plain(name), label), label + 1), "dim"),
        ("█" * size, "bar"),
        (facts, "dim"),
        at=ToCompile(piece.compile_id),
    )


def _break(view: View, cut: Cut) -> Row:
    place = view.derived.names.place(cut.place.file, cut.place.line)
    notes = [crossing_text(cut.crossings)] if cut.crossings.names else []
    if cut.host_waits:
        notes.append("host waits for the data")
    spans: list[Span] = [
        ("      ✗ ", "bad"),
        text(f"{place}  ", "dim"),
        text(cut.place.text.strip() or cut.title),
        text("   " + " · ".join(notes), "dim"),
    ]
    return Row(
        body=tuple(spans),
        ref=cut.place.ref,
        key=f"cut:{cut.place.file}:{cut.place.line}:{cut.gb}",
        opens=ToBreak(cut.place.file, cut.place.line, cut.gb),
    )
