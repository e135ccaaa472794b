"""A run against its base: the verdict and its measurements, the effects in words, both sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Progress, Timed, WhatIf
from tcw.viewers.kit.cells import cut, pad, wrap
from tcw.viewers.kit.figures import TimeUnit, cells_of
from tcw.viewers.kit.spans import Line, Role, Span, text, width_of
from tcw.viewers.panes import source
from tcw.viewers.panes.rows import BLANK, Content, Row, Rows, empty, text_row, text_rows
from tcw.viewers.panes.targets import ToEffect, ToView
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.differences import Difference
from tcw.viewers.summary.differences.alignment import Alignment
from tcw.viewers.summary.differences.difference_words import effect_words
from tcw.viewers.summary.differences.effects import Effect
from tcw.viewers.summary.differences.measured import MeasuredDifference
from tcw.viewers.text.diff import effect_lines
from tcw.viewers.words import plural

NAME = 8
"""Cells of a bar's name."""
FIGURES = 18
"""Cells after a bar."""
ROWS = 4
"""Measurements listed besides that of the verdict."""


def difference_of(view: View) -> Difference | None:
    """The current run against its base."""
    return view.derived.difference(view.base) if view.base is not None else None


def nothing(name: str, width: int) -> Content:
    """The pane of two runs, if there is one."""
    why = "this run is compared with no other"
    return Content(name, rows=empty(width, why, "w at a decision compiles again, with the other"))


def verdict(view: View, width: int) -> Content:
    difference = difference_of(view)
    if difference is None:
        return nothing("what-if", width)
    what_if_verdict = difference.verdict
    rows = [BLANK, *_answer(view, difference, width)]
    if what_if_verdict.measured is not None:
        rows += [BLANK, *_bars(what_if_verdict.measured, what_if_verdict.subject, width)]
    others = [
        measured_difference
        for measured_difference in difference.measured
        if measured_difference is not what_if_verdict.measured and _listed(measured_difference)
    ]
    if others:
        rows.append(BLANK)
        rows += [_other(other) for other in others[:ROWS]]
        if len(others) > ROWS:
            rows.append(text_row((f"   {len(others) - ROWS} more measured", "faint")))
    rows.append(BLANK)
    return Content("what-if", _subject(difference), rows=rows, still=True)


def _subject(difference: Difference) -> str:
    """`veto exp+sum`: the change, without the path of its id."""
    what, _, id = difference.because.partition(" ")
    return f"{what} {id.rpartition('/')[2]}".strip() or difference.verdict.subject


def _listed(difference: MeasuredDifference) -> bool:
    """A whole call is in the second line."""
    return difference.record.scope != "call"


def _answer(view: View, difference: Difference, width: int) -> list[Row]:
    what_if_verdict = difference.verdict
    glyph, role = _GLYPHS[what_if_verdict.tone]
    measured = what_if_verdict.measured
    if measured is None:
        words = what_if_verdict.why or _pending(view, difference)
        head: Line = ((f" {glyph} ", role), text(what_if_verdict.title, "strong"))
        rest = [f"   {line}" for line in wrap(words, width - 4)] if words else []
        return [Row(body=head), *(text_row((line, "dim")) for line in rest)]
    before, after, unit = measured.times
    size: Role = "text" if measured.outcome == "in noise" else role
    title: Line = ((f" {glyph} ", role), text(what_if_verdict.title, "strong"))
    times: Line = (
        (f"{before} → {after} {unit}", "strong"),
        ("   ", "text"),
        (measured.change_text, size),
    )
    share = "in noise" if measured.outcome == "in noise" else measured.share_text
    record = measured.record
    how: Line = (
        (f"{plural(record.pairs, 'pair')}, {measured.scope}, {record.caches} caches", "dim"),
    )
    part: Line = ((f"   {share}   ", "dim"),)
    indent: Line = (("   ", "text"),)
    colon: Line = ((": ", "strong"),)
    layouts: tuple[tuple[Line, ...], ...] = (
        ((*title, *colon, *times, *part, *how),),
        ((*title, *colon, *times, *part), (*indent, *how)),
        (title, (*indent, *times, *part), (*indent, *how)),
        (title, (*indent, *times[:1]), (*indent, *times[2:], *part), (*indent, *how)),
    )
    fitting = (layout for layout in layouts if all(width_of(line) <= width for line in layout))
    rows = [Row(body=line) for line in next(fitting, layouts[-1])]
    return [*rows, *_second(view, difference, measured, width)]


_GLYPHS: dict[str, tuple[str, Role]] = {
    "good": ("✓", "good"),
    "bad": ("✗", "bad"),
    "neutral": ("≈", "dim"),
}


def _pending(view: View, difference: Difference) -> str:
    if view.live and not difference.measured:
        progress = view.derived.whole.last(Progress)
        return progress.activity if progress is not None else "the run goes on"
    if view.in_page:
        return "not measured"
    if view.compares_traces:
        return "not measured: the base is a recording; w compiles both here, and times them"
    return "M measures whole calls of both"


def _second(
    view: View, difference: Difference, measured: MeasuredDifference, width: int
) -> list[Row]:
    """The whole call, and whether both give the same results."""
    calls = [
        measured_difference
        for measured_difference in difference.measured
        if measured_difference.record.scope == "call"
    ]
    words, role = "not measured" if view.in_page else "not measured: M measures it", "dim"
    if measured.record.scope == "call":
        calls = []
        words = ""
    if calls:
        words, role = _times(calls[0])
    call: Line = (("   whole call  ", "dim"), (pad(words, 32), role)) if words else ()  # type: ignore[assignment]
    output: Line = (("   output  ", "dim"), (measured.output, _doubt(measured.record)))
    if words and width_of((*call, *output)) <= width:
        return [text_row(*call, *output)]
    return [Row(body=line) for line in (call, output) if line]


def _doubt(record: WhatIf) -> Role:
    """Rounding is not a fault: only results that are wrong, or that have no error, are marked."""
    no_error = record.equal is False and record.max_error is None and not record.note
    refused = record.within is False or no_error
    return "warn" if refused else "dim"


def _times(difference: MeasuredDifference) -> tuple[str, Role]:
    if difference.outcome == "not measured":
        return f"not measured: {plain(difference.record.reason)}", "dim"
    before, after, unit = difference.times
    note = ", in noise" if difference.outcome == "in noise" else ""
    role: Role = {"faster": "good", "slower": "bad", "in noise": "dim"}[difference.outcome]  # type: ignore[assignment]
    return f"{before} → {after} {unit}  {difference.change_text}{note}", role


def _other(difference: MeasuredDifference) -> Row:
    record = difference.record
    if difference.change is not None:
        about = difference.change.name
    elif record.scope == "graph":
        about = record.graph
    else:
        about = ", ".join(record.run_kernels or record.base_kernels)
    words, role = _times(difference)
    return text_row((f"   {pad(cut(plain(about), 24), 24)}  ", "dim"), (words, role))


def _bars(measured: MeasuredDifference, subject: str, width: int) -> list[Row]:
    """Both times to scale."""
    before, after = measured.both
    unit = measured.unit
    most = max(before.median, after.median)
    room = max(8, min(64, width - NAME - FIGURES - 8))
    role: Role = {"faster": "good", "slower": "bad"}.get(measured.outcome, "bar")  # type: ignore[assignment]
    name = subject if len(subject) < NAME else "run"
    return [
        _bar("base", before, most, room, unit, "bar"),
        _bar(name, after, most, room, unit, role),
    ]


def _bar(name: str, version: Timed, most: float, room: int, unit: TimeUnit, role: Role) -> Row:
    cells = max(1, cells_of(version.median, most, room))
    figures = f"{unit.measured(version.median)} {unit.name} ±{unit.measured(version.spread)}"
    return text_row(
        (f"   {pad(name, NAME)}", "dim"), ("█" * cells, role), " " * (room - cells + 2), figures
    )


_LEADS = {
    "break": "break", "recompile": "recompiles", "memory": "memory", "graph": "source",
    "operation": "what-if", "fusion": "what-if", "kernel": "what-if",
}  # fmt: skip
"""Kind of an effect -> the arrangement that shows it in full."""


def effects_list(view: View, width: int) -> Content:
    difference = difference_of(view)
    if difference is None or view.base is None:
        return nothing("differences", width)
    files = (difference.base.file, difference.run.file)
    subject = " → ".join(plain(PurePath(str(file)).name) if file else "run" for file in files)
    rows = [BLANK]
    told = ""
    for index, effect in enumerate(difference.effects):
        rows += _effect_rows(index, effect, width, told)
        told = effect.cause
    if not difference.effects:
        words = "Nothing changed" + ("" if difference.nothing else " except what is listed below")
        rows.append(text_row((f" {words}", "strong")))
    count = len(difference.effects)
    right: Line = ((f"{min(view.effect, count - 1) + 1} of {count}", "dim"),) if count else ()
    start = str(ToEffect(min(view.effect, count - 1))) if count else ""
    return Content("differences", subject, right, [*rows, BLANK], start, tracks=True, still=True)


def looked_at(view: View) -> Effect | None:
    """The effect under the cursor."""
    difference = difference_of(view)
    effects = difference.effects if difference is not None else ()
    return effects[min(view.effect, len(effects) - 1)] if effects else None


def ref_of(effect: Effect) -> str:
    """The line of an effect, in the run; "" if the run has no such line."""
    line = effect.line
    return refs.source(line.file, line.line) if line is not None and not line.gone else ""


def _effect_rows(index: int, effect: Effect, width: int, told: str) -> list[Row]:
    """`told`: the cause of the effect above."""
    head, *more = text_rows(effect_lines([effect], 1, told), width, indent=1)
    lead = _LEADS.get(effect.kind)
    place = f"{effect.place}  " if effect.place else ""
    head = replace(
        head,
        at=ToEffect(index),
        opens=ToView(lead) if lead else None,
        selects=ref_of(effect),
        copies=plain(place + effect_words(effect)),
    )
    return [head, *more]


_SIGNS: dict[str, Span] = {"removed": ("−", "bad"), "added": ("+", "good")}


def source_base(view: View, width: int) -> Content:
    """The base's source: lines that the run changed or removed stand out. A line that both have is
    one thing: it has the ref of the run's, so that both sides light up together."""
    difference = difference_of(view)
    if difference is None or view.base is None:
        return nothing("before", width)
    alignment = difference.alignment
    name = source.file_of(_looking(view, alignment))
    file = alignment.base_file(name)
    lines = difference.base.source(file)
    if not lines:
        why = f"the base has no {view.derived.names.short(name)}"
        return Content("before", rows=empty(width, why))
    known = alignment.lines(file)
    selected = _selected(view, name, known)
    here = replace(view, derived=view.base, ref=refs.source(file, selected), lit={}, base=None)
    content = source.content(here, width)
    after = difference.run.source(name)
    row_refs = [
        refs.source(name, known[number]) if number in known else ""
        for number in range(1, len(lines) + 1)
    ]

    def make(index: int) -> Row:
        row = content.rows[index]
        other = known.get(index + 1, 0)
        changed = not other or after[other - 1] != lines[index]
        return replace(_tinted(row, "removed") if changed else row, ref=row_refs[index])

    rows = Rows(len(content.rows), make, row_refs)
    return replace(content, name="before", rows=rows, tracks=bool(selected), centred=True)


def source_run(view: View, width: int) -> Content:
    """The run's source: lines that it changed or added stand out."""
    difference = difference_of(view)
    if difference is None:
        return nothing("after", width)
    alignment = difference.alignment
    here = _looking(view, alignment)
    content = source.content(here, width)
    name = source.file_of(here)
    file = alignment.base_file(name)
    before, after = difference.base.source(file), difference.run.source(name)
    if not before or not isinstance(content.rows, Rows):
        return replace(content, name="after")
    origin = {number: one for one, number in alignment.lines(file).items()}

    def make(index: int) -> Row:
        row = content.rows[index]
        other = origin.get(index + 1, 0)
        changed = not other or before[other - 1] != after[index]
        return _tinted(row, "added") if changed else row

    rows = Rows(len(content.rows), make, content.rows.refs)
    return replace(content, name="after", rows=rows, tracks=bool(here.ref), centred=True)


def _looking(view: View, alignment: Alignment) -> View:
    """Without a selection, at the first line of the run that the effect concerns."""
    effect = looked_at(view)
    if view.ref or effect is None or effect.line is None:
        return view
    line = effect.line
    if not line.gone:
        return replace(view, ref=refs.source(line.file, line.line), lit={})
    known = alignment.lines(alignment.base_file(line.file))
    near = max((one for number, one in known.items() if number < line.line), default=1)
    return replace(view, ref=refs.source(line.file, near), lit={})


def _selected(view: View, name: str, known: Mapping[int, int]) -> int:
    """The base's current line; 0 for none."""
    effect = looked_at(view)
    if not view.ref:
        line = effect.line if effect is not None else None
        if line is not None and line.gone and line.file == name:
            return line.line
    for ref in (view.ref, *view.lit):
        if refs.kind(ref) == "src" and refs.split_source(ref)[0] == name:
            number = refs.split_source(ref)[1]
            return next((one for one, other in known.items() if other == number), 0)
    return 0


def _tinted(row: Row, tint: str) -> Row:
    """A line with a sign beside its number, for readers without colours."""
    number, *rest = row.gutter
    free = next((at for at, (words, _) in reversed([*enumerate(rest)]) if words == " "), 0)
    rest[free] = _SIGNS[tint]
    return replace(row, gutter=(number, *rest), tint=tint)  # type: ignore[arg-type]
