"""Two runs of one model: whether the change paid, and by how much."""

from __future__ import annotations

from tcw.compiler.trace.records import Progress, Timed, WhatIf
from tcw.viewers.kit.bars import cells_of
from tcw.viewers.kit.cells import cut, pad, wrap
from tcw.viewers.kit.figures import TimeUnit
from tcw.viewers.kit.spans import Line, Role, text, width_of
from tcw.viewers.panes.rows import BLANK, Content, Row, empty
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.differences import Difference
from tcw.viewers.summary.differences.measured import MeasuredDifference
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
    found = difference.verdict
    rows = [BLANK, *_answer(view, difference, width)]
    if found.measured is not None:
        rows += [BLANK, *_bars(found.measured, found.subject, width)]
    others = [one for one in difference.measured if one is not found.measured and _listed(one)]
    if others:
        rows.append(BLANK)
        rows += [_other(one) for one in others[:ROWS]]
        if len(others) > ROWS:
            rows.append(Row(body=((f"   {len(others) - ROWS} more measured", "faint"),)))
    rows.append(BLANK)
    return Content("what-if", _subject(difference), rows=rows, still=True)


def _subject(difference: Difference) -> str:
    """`veto exp+sum`: the change, without the path of its id."""
    what, _, id = difference.because.partition(" ")
    return f"{what} {id.rpartition('/')[2]}".strip() or difference.verdict.subject


def _listed(one: MeasuredDifference) -> bool:
    """A whole call is in the second line."""
    return one.record.scope != "call"


def _answer(view: View, difference: Difference, width: int) -> list[Row]:
    found = difference.verdict
    glyph, role = _GLYPHS[found.tone]
    measured = found.measured
    if measured is None:
        words = found.why or _pending(view, difference)
        head: Line = ((f" {glyph} ", role), text(found.title, "strong"))
        rest = [f"   {line}" for line in wrap(words, width - 4)] if words else []
        return [Row(body=head), *(Row(body=((line, "dim"),)) for line in rest)]
    before, after, unit = measured.times
    size: Role = "text" if measured.outcome == "in noise" else role
    title: Line = ((f" {glyph} ", role), text(found.title, "strong"))
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
    fitting = (one for one in layouts if all(width_of(line) <= width for line in one))
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
    calls = [one for one in difference.measured if one.record.scope == "call"]
    words, role = "not measured" if view.in_page else "not measured: M measures it", "dim"
    if measured.record.scope == "call":
        calls = []
        words = ""
    if calls:
        words, role = _times(calls[0])
    call: Line = (("   whole call  ", "dim"), (pad(words, 32), role)) if words else ()  # type: ignore[assignment]
    output: Line = (("   output  ", "dim"), (measured.output, _doubt(measured.record)))
    if words and width_of((*call, *output)) <= width:
        return [Row(body=(*call, *output))]
    return [Row(body=line) for line in (call, output) if line]


def _doubt(record: WhatIf) -> Role:
    """Rounding is not a fault: only results that are wrong, or that have no error, are marked."""
    no_error = record.equal is False and record.max_error is None and not record.note
    refused = record.within is False or no_error
    return "warn" if refused else "dim"


def _times(one: MeasuredDifference) -> tuple[str, Role]:
    if one.outcome == "not measured":
        return f"not measured: {plain(one.record.reason)}", "dim"
    before, after, unit = one.times
    note = ", in noise" if one.outcome == "in noise" else ""
    role: Role = {"faster": "good", "slower": "bad", "in noise": "dim"}[one.outcome]  # type: ignore[assignment]
    return f"{before} → {after} {unit}  {one.change_text}{note}", role


def _other(one: MeasuredDifference) -> Row:
    record = one.record
    if one.change is not None:
        about = one.change.name
    elif record.scope == "graph":
        about = record.graph
    else:
        about = ", ".join(record.run_kernels or record.base_kernels)
    words, role = _times(one)
    return Row(body=(text(f"   {pad(cut(plain(about), 24), 24)}  ", "dim"), (words, role)))


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
    return Row(
        body=(
            (f"   {pad(name, NAME)}", "dim"),
            ("█" * cells, role),
            (" " * (room - cells + 2), "text"),
            (figures, "text"),
        )
    )
