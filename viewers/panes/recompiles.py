"""Recompiles by cause, why the chosen one happened, and calls against the entries of its cache."""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len

from tcw.compiler.trace.records import CallStart, FixTrial, Recompile
from tcw.viewers.kit.cells import cut, keep_end, pad, wrap
from tcw.viewers.kit.spans import Line, Role, Span, text, width_of
from tcw.viewers.panes.chrome import call_name
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row, text_rows
from tcw.viewers.panes.targets import ToCause, ToCompile, ToFrame, ToThing
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.calls import ModelCall
from tcw.viewers.summary.findings import values_text
from tcw.viewers.summary.recompiles import RecompileCause, change_of
from tcw.viewers.tables.findings import advice_lines, place_lines, shown_advice
from tcw.viewers.words import plural, seconds_text

LABEL = 10


def cause_of(view: View) -> RecompileCause | None:
    causes = view.summary.recompiles
    return causes[min(view.cause, len(causes) - 1)] if causes else None


def causes(view: View, width: int) -> Content:
    """One entry a cause, with every frame that it recompiled."""
    recompile_causes = view.summary.recompiles
    rows: list[Row] = []
    if not recompile_causes:
        words = plural(view.summary.compiles, "compile")
        rows = empty(width, f"no recompile in {words}")
    for index, cause in enumerate(recompile_causes):
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
            text_row(
                (" ↻ ", "warn"),
                (lead + change, "strong"),
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
                text_row(
                    (f"     {path}  ", "dim"),
                    name,
                    *values,
                    at=ToFrame(frame.compile_id),
                    opens=ToCompile(frame.compile_id),
                )
            )
    seconds = view.summary.recompile_seconds
    total = f", {seconds_text(seconds)}" if seconds is not None else ""
    right: Line = ((plural(len(recompile_causes), "cause") + total, "dim"),)
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
        text_row(("↻ ", "warn"), (fixed, "strong"), gutter=((" ", "text"),)),
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
        label, shown, role = shown_advice(advice, view.recording.all(FixTrial))
        fix = advice_lines([shown], 1, width - 1, pad(label, LABEL), role)
        key = "fix" if advice.code else ""
        rows += [BLANK, *text_rows(fix, width, key=key, copies=advice.code)]
    rows.append(BLANK)
    limit = wrap(record.reason.splitlines()[0], room) if record.reason else []
    lines = wrap(record.reason, room) if view.torch_text else limit[:2]
    for index, line in enumerate(lines):
        label = "" if index else "torch"
        rows.append(text_row((pad(label, LABEL), "dim"), (line, "faint"), gutter=((" ", "text"),)))
    return Content("why", rows=rows, start="fix")


def seen_in(call: int) -> str:
    """The call whose arguments failed a guard; 0 stands for those that were made to time it."""
    return f"in call {call}" if call else "in a timed call"


def _pair(label: str, value: str, note: str, role: Role = "dim") -> Row:
    return text_row(
        (pad(label, LABEL), "dim"), (value, "strong"), (f"   {note}", role), gutter=((" ", "text"),)
    )


CALL = 9
"""Cells for `call 12`."""


def _frame(view: View) -> str:
    """The frame whose cache is shown: that of the chosen cause."""
    cause = cause_of(view)
    if cause is not None:
        return cause.frames[0].compile_id.partition("/")[0]
    return view.compile_id.partition("/")[0] or "0"


def cache(view: View, width: int) -> Content:
    """Rows are calls, columns the cache entries of one frame: which served, which did not, and why.
    Compiles outside all calls are the row `timing` or `outside`."""
    frame = _frame(view)
    entries = [cid for cid in view.derived.pieces if cid.partition("/")[0] == frame]
    calls = [call for call in view.summary.calls if call.number or frame in _frames(call)]
    if not entries:
        return Content("cache", f"of frame {frame}", rows=empty(width, "no cache entry yet"))
    recompiles = {record.compile_id: record for record in view.recording.all(Recompile)}
    inputs = _inputs(view, recompiles)
    columns = {
        name: min(width, max(len(name), *(len(value) for value in values.values()), 1) + 2)
        for name, values in inputs.items()
    }
    label = min(CALL + sum(columns.values()), max(CALL, width // 2))
    column = max(12, min(24, (width - label - 1) // len(entries)))
    shown = _shown(entries, max(1, (width - label - 1) // column), view)
    hidden = len(entries) - len(shown)
    head = "".join(pad(name, size) for name, size in columns.items())
    heads: list[Span] = [text(pad(" " * CALL + cut(head.rstrip(), label - CALL), label + 1), "dim")]
    heads += [text(pad(entry, column), "accent") for entry in shown]
    demands = _demands(shown, recompiles, column)
    rows = [BLANK, Row(body=tuple(heads))]
    rows += [text_row(" " * (label + 1), *demands)] if demands else []
    rows.append(BLANK)
    for call in calls:
        failed = _failures(call.number, frame, recompiles)
        values = "".join(
            pad(inputs[name].get(call.number, ""), size) for name, size in columns.items()
        )
        spans: list[Span] = [
            (pad(f" {call_name(view, call)}", CALL), "strong"),
            text(pad(cut(values.rstrip(), label - CALL), label - CALL + 1), "text"),
        ]
        for entry in shown:
            cell = _cell(call, entry, failed, column)
            spans += [*cell, (" " * max(1, column - width_of(cell)), "text")]
        rows.append(Row(body=tuple(spans), key=f"call:{call.number}"))
    rows.append(BLANK)
    numbered = sum(call.number > 0 for call in calls)
    words = f"{plural(numbered, 'call')}, {plural(len(entries), 'entry', 'entries')}"
    if hidden:
        words += f", {hidden} not shown"
    function = view.derived.pieces[entries[0]].function
    return Content("cache", f"of frame {frame}  {function}", ((words, "dim"),), rows)


def _shown(entries: list[str], room: int, view: View) -> list[str]:
    """The last entries; if not all fit, those around the chosen cause's first."""
    cause = cause_of(view)
    chosen = cause.frames[0].compile_id if cause is not None else ""
    end = len(entries)
    if chosen in entries:
        # the entry before it, which did not serve, is shown too
        end = min(end, max(room, entries.index(chosen) - 1 + room))
    return entries[max(0, end - room) : end]


def _frames(call: ModelCall) -> set[str]:
    """The frames compiled in a call."""
    return {piece.frame for piece in call.pieces}


def _cell(call: ModelCall, entry: str, failed: dict[str, str], column: int) -> Line:
    """What one call did with one entry."""
    made = next((piece for piece in call.pieces if piece.compile_id == entry), None)
    if made is not None:
        took = f"  {seconds_text(made.seconds)}" if made.recompiles else ""
        fits = len("● compiled") + len(took) < column
        return (("● compiled", "accent"), (took, "dim")) if fits else (("● compiled", "accent"),)
    if entry in failed:
        return ((f"✗ {_short(failed[entry], column - 3)}", "bad"),)
    if entry in call.hits:
        return (("✓ hit", "good"),)
    unknown = call.seconds is not None and not call.hits and not call.pieces
    return (("?", "faint"),) if unknown else ()


def _short(words: str, room: int) -> str:
    """Names without `self.` if they do not fit, then the end of what is left."""
    words = plain(words)
    return keep_end(words if len(words) <= room else words.replace("self.", ""), room)


def _failures(call: int, frame: str, recompiles: dict[str, Recompile]) -> dict[str, str]:
    """Entry -> what failed, for the entries of one frame that this call tried."""
    return {
        failed.entry: change_of(failed).name
        for cid, record in recompiles.items()
        if record.call == call and cid.partition("/")[0] == frame
        for failed in record.failed
    }


def _inputs(view: View, recompiles: dict[str, Recompile]) -> dict[str, dict[int, str]]:
    """Of the inputs that guards failed on, the value in each call: `x.size(0)` -> {1: `4`}."""
    names = dict.fromkeys(
        change_of(failed).name for record in recompiles.values() for failed in record.failed
    )
    found: dict[str, dict[int, str]] = {}
    for start in view.recording.all(CallStart):
        for argument in start.arguments:
            known = {argument.name: argument.value}
            if argument.tensor is not None:
                shape = argument.tensor.shape
                known = {f"{argument.name}.size({dim})": str(n) for dim, n in enumerate(shape)}
            for name, value in known.items():
                if name in names:
                    found.setdefault(name, {})[start.call] = cut(plain(value), 12)
    return found


def _demands(entries: list[str], recompiles: dict[str, Recompile], column: int) -> Line:
    """Below each entry: what it requires of the values on which calls failed."""
    demanded: dict[str, dict[str, str]] = {}
    for record in recompiles.values():
        for failed in record.failed:
            change = change_of(failed)
            demanded.setdefault(failed.entry, {})[change.name] = change.expected
    spans: list[Span] = []
    for entry in entries:
        known = demanded.get(entry, {})
        words = " ".join(f"{name}={value}" for name, value in known.items() if value)
        spans.append((pad(_short(words, column - 2), column), "faint"))
    return tuple(spans) if any(words.strip() for words, _ in spans) else ()
