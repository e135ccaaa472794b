"""Recompiles by cause, and why the chosen one happened."""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len

from tcw.viewers.kit.cells import cut, keep_end, pad, wrap
from tcw.viewers.kit.spans import Line, Role, text, width_of
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_rows
from tcw.viewers.panes.targets import ToCause, ToCompile, ToFrame, ToThing
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.findings import values_text
from tcw.viewers.summary.recompiles import RecompileCause
from tcw.viewers.tables.findings import advice_lines
from tcw.viewers.tables.places import place_lines
from tcw.viewers.words import plural, seconds_text

LABEL = 10


def cause_of(view: View) -> RecompileCause | None:
    causes = view.summary.recompiles
    return causes[min(view.cause, len(causes) - 1)] if causes else None


def causes(view: View, width: int) -> Content:
    """One entry a cause, with every frame that it recompiled."""
    found = view.summary.recompiles
    rows: list[Row] = []
    if not found:
        words = plural(view.summary.compiles, "compile")
        rows = empty(width, f"no recompile in {words}")
    for index, cause in enumerate(found):
        if index:
            rows.append(BLANK)
        distinct = {frame.compile_id.partition("/")[0] for frame in cause.frames}
        each_once = len(distinct) == len(cause.frames)
        frames = plural(len(cause.frames), "frame" if each_once else "compile")
        took = seconds_text(cause.seconds) if cause.seconds is not None else "unfinished"
        right_side: Line = ((f"{frames}  ", "dim"), (took + " ", "warn"))
        lead = f"{cause.callers}   " if cause.callers else ""
        change = _change(cause, width - len(lead) - 4 - width_of(right_side))
        rows.append(
            Row(
                body=((" ↻ ", "warn"), (lead + change, "strong")),
                right=right_side,
                selects=cause.place.ref if cause.place else "",
                at=ToCause(index),
                copies=next((advice.code for advice in cause.advice if advice.code), ""),
            )
        )
        for frame in cause.frames:
            path = (
                f"{frame.instead_of} → {frame.compile_id}" if frame.instead_of else frame.compile_id
            )
            values: Line = (
                (" expected ", "dim"),
                text(frame.change.expected or "?", "strong"),
                (" seen ", "dim"),
                text(frame.change.seen or "?", "strong"),
            )
            room = max(14, width - len(path) - 7 - width_of(values))
            name = pad(keep_end(plain(frame.change.name), room), 14)
            rows.append(
                Row(
                    body=(text(f"     {path}  ", "dim"), (name, "text"), *values),
                    at=ToFrame(frame.compile_id),
                    opens=ToCompile(frame.compile_id),
                )
            )
    seconds = view.summary.recompile_seconds
    total = f", {seconds_text(seconds)}" if seconds is not None else ""
    right: Line = ((plural(len(found), "cause") + total, "dim"),)
    return Content("recompiles", "by cause", right, rows, str(ToCause(view.cause)), tracks=True)


def _change(cause: RecompileCause, room: int) -> str:
    """`x.size(0) 4 → 6`: of a long name its end, of long values their beginning."""
    words = plain(values_text(cause))
    name = plain(cause.change.name)
    values = words.removeprefix(name)
    return keep_end(words, room) if cell_len(values) <= room // 2 else cut(words, room)


def why(view: View, width: int) -> Content:
    """The chosen cause: the guard, both values, the line that made it, the fix."""
    cause = cause_of(view)
    if cause is None:
        return Content("why", rows=empty(width, "no recompile to explain"))
    record = cause.frames[0].record
    failed = cause.frames[0].why
    room = width - LABEL - 3
    subject = cause.change
    fixed = f"{subject.name} was fixed to {subject.expected}" if subject.expected else subject.text
    rows = [
        BLANK,
        Row(gutter=((" ", "text"),), body=(("↻ ", "warn"), text(fixed, "strong"))),
        BLANK,
    ]
    if failed is not None:
        entry = view.derived.pieces.get(failed.entry)
        when = f"from call {entry.call}" if entry else ""
        rows.append(_pair("guard", failed.kind or failed.guard, failed.source, "accent"))
        rows.append(_pair("expected", failed.expected or "not known", when))
        rows.append(_pair("seen", failed.seen or "not known", seen_in(record.call)))
        if failed.tested:
            tested = f"{plural(failed.tested, 'guard')} before it failed"
            rows.append(_pair("tested", tested, ""))
    if cause.place is not None:
        placed = place_lines(cause.place, view.derived.names, 1, width - 1, pad("line", LABEL))
        head, *more = text_rows(placed, width, key="line")
        ref = cause.place.ref
        rows += [replace(head, selects=ref, opens=ToThing(ref)), *more]
    for advice in cause.advice:
        fix = advice_lines([advice], 1, width - 1, pad("fix", LABEL))
        key = "fix" if advice.code else ""
        rows += [BLANK, *text_rows(fix, width, key=key, copies=advice.code)]
    rows.append(BLANK)
    limit = wrap(record.reason.splitlines()[0], room) if record.reason else []
    lines = wrap(record.reason, room) if view.torch_text else limit[:2]
    for index, line in enumerate(lines):
        label = "" if index else "torch"
        rows.append(
            Row(gutter=((" ", "text"),), body=((pad(label, LABEL), "dim"), (line, "faint")))
        )
    return Content("why", rows=rows, start="fix")


def seen_in(call: int) -> str:
    """The call whose arguments failed a guard; 0 stands for those that were made to time it."""
    return f"in call {call}" if call else "in a timed call"


def _pair(label: str, value: str, note: str, role: Role = "dim") -> Row:
    return Row(
        gutter=((" ", "text"),),
        body=((pad(label, LABEL), "dim"), text(value, "strong"), text(f"   {note}", role)),
    )
