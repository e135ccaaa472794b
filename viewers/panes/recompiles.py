"""Recompiling: calls against cache entries, causes, and why the chosen one happened."""

from __future__ import annotations

from compiler.trace.records import CallStart, Recompile
from viewers.panes.highlight import highlight
from viewers.panes.rows import (
    BLANK,
    Content,
    Line,
    Role,
    Row,
    Span,
    empty,
    pad,
    text,
    width_of,
    wrap,
)
from viewers.panes.view import View
from viewers.places import cut
from viewers.plain import plain
from viewers.summary import Call, RecompileCause
from viewers.summary.recompiles import change_of
from viewers.words import plural, seconds_text

LABEL = 10
CALL = 9


def cause_of(view: View) -> RecompileCause | None:
    causes = view.summary.recompiles
    return causes[min(view.cause, len(causes) - 1)] if causes else None


def _frame(view: View) -> str:
    """The frame whose cache is shown: that of the chosen cause."""
    cause = cause_of(view)
    if cause is not None:
        return cause.frames[0].compile_id.partition("/")[0]
    return view.compile_id.partition("/")[0] or "0"


def cache(view: View, width: int) -> Content:
    """Rows are calls, columns the cache entries of one frame: which served, which did not, why."""
    frame = _frame(view)
    entries = [cid for cid in view.facts.pieces if cid.partition("/")[0] == frame]
    calls = [call for call in view.summary.calls if call.number]
    if not entries:
        return Content("cache", f"of frame {frame}", rows=empty("no cache entry yet"))
    recompiles = {record.compile_id: record for record in view.recording.all(Recompile)}
    inputs = _inputs(view, recompiles)
    columns = {
        name: max(len(name), *(len(value) for value in values.values()), 1) + 2
        for name, values in inputs.items()
    }
    label = min(CALL + sum(columns.values()), max(CALL, width // 2))
    column = max(12, min(24, (width - label - 1) // len(entries)))
    shown = entries[-max(1, (width - label - 1) // column) :]
    hidden = len(entries) - len(shown)
    head = "".join(pad(name, size) for name, size in columns.items())
    heads: list[Span] = [text(pad(" " * CALL + cut(head, label - CALL), label + 1), "dim")]
    heads += [text(pad(entry, column), "accent") for entry in shown]
    demands = _demands(shown, recompiles, column)
    rows = [BLANK, Row(body=tuple(heads))]
    rows += [Row(body=((" " * (label + 1), "text"), *demands))] if demands else []
    rows.append(BLANK)
    for call in calls:
        failed = _failures(call.number, frame, recompiles)
        values = "".join(
            pad(inputs[name].get(call.number, ""), size) for name, size in columns.items()
        )
        spans: list[Span] = [
            (pad(f" call {call.number}", CALL), "strong"),
            text(pad(cut(values, label - CALL), label - CALL + 1), "text"),
        ]
        for entry in shown:
            cell = _cell(call, entry, failed, column)
            spans += [*cell, (" " * max(1, column - width_of(cell)), "text")]
        rows.append(Row(body=tuple(spans), key=f"call:{call.number}"))
    rows.append(BLANK)
    words = f"{plural(len(calls), 'call')}, {plural(len(entries), 'entry', 'entries')}"
    if hidden:
        words += f", {hidden} older not shown"
    function = view.facts.pieces[entries[0]].function
    return Content("cache", f"of frame {frame}  {function}", ((words, "dim"),), rows)


def _cell(call: Call, entry: str, failed: dict[str, str], column: int) -> Line:
    """What one call did with one entry."""
    made = next((piece for piece in call.pieces if piece.compile_id == entry), None)
    if made is not None:
        took = f"  {seconds_text(made.seconds)}" if made.recompiles else ""
        fits = len("● compiled") + len(took) < column
        return (("● compiled", "accent"), (took, "dim")) if fits else (("● compiled", "accent"),)
    if entry in failed:
        return (text(f"✗ {cut(failed[entry], column - 3)}", "bad"),)
    return (("✓ hit", "good"),) if entry in call.hits else ()


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
    """Below each entry: what it demands of the values on which calls failed."""
    demanded: dict[str, dict[str, str]] = {}
    for record in recompiles.values():
        for failed in record.failed:
            change = change_of(failed)
            demanded.setdefault(failed.entry, {})[change.name] = change.expected
    spans: list[Span] = []
    for entry in entries:
        known = demanded.get(entry, {})
        words = " ".join(f"{name}={value}" for name, value in known.items() if value)
        spans.append(text(pad(cut(words, column - 2), column), "faint"))
    return tuple(spans) if any(words.strip() for words, _ in spans) else ()


def causes(view: View, width: int) -> Content:
    """One entry a cause, with every frame that it recompiled."""
    found = view.summary.recompiles
    rows: list[Row] = []
    if not found:
        words = plural(view.summary.compiles, "compile")
        rows = empty(f"no recompile in {words}")
    for index, cause in enumerate(found):
        if index:
            rows.append(BLANK)
        key = f"cause:{index}"
        calls = " ".join(str(call) for call in cause.calls)
        frames = plural(len(cause.frames), "frame")
        took = seconds_text(cause.seconds) if cause.seconds is not None else "unfinished"
        rows.append(
            Row(
                body=((" ↻ ", "warn"), text(f"call {calls}   {cause.change.text}", "strong")),
                right=((f"{frames}  ", "dim"), (took + " ", "warn")),
                selects=cause.place.ref if cause.place else "",
                key=key,
                opens=key,
                copies=next((advice.code for advice in cause.advice if advice.code), ""),
            )
        )
        for frame in cause.frames:
            path = (
                f"{frame.instead_of} → {frame.compile_id}" if frame.instead_of else frame.compile_id
            )
            rows.append(
                Row(
                    body=(
                        text(f"     {path}  ", "dim"),
                        text(pad(frame.change.name, 14)),
                        (" expected ", "dim"),
                        text(frame.change.expected or "?", "strong"),
                        (" seen ", "dim"),
                        text(frame.change.seen or "?", "strong"),
                    ),
                    key=f"frame:{frame.compile_id}",
                    opens=f"compile:{frame.compile_id}",
                )
            )
    seconds = view.summary.recompile_seconds
    total = f", {seconds_text(seconds)}" if seconds is not None else ""
    right: Line = ((plural(len(found), "cause") + total, "dim"),)
    return Content("recompiles", "by cause", right, rows, f"cause:{view.cause}", tracks=True)


def why(view: View, width: int) -> Content:
    """The chosen cause: the guard, both values, the line that made it, the fix."""
    cause = cause_of(view)
    if cause is None:
        return Content("why", rows=empty("no recompile to explain"))
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
        entry = view.facts.pieces.get(failed.entry)
        when = f"from call {entry.call}" if entry else ""
        rows.append(_pair("guard", failed.kind or failed.guard, failed.source, "accent"))
        rows.append(_pair("expected", failed.expected or "not known", when))
        rows.append(_pair("seen", failed.seen or "not known", f"on call {record.call}"))
        if failed.tested:
            tested = f"{plural(failed.tested, 'guard')} before it failed"
            rows.append(_pair("tested", tested, ""))
    if cause.place is not None:
        place = cause.place
        name = view.facts.names.place(place.file, place.line)
        code = highlight(place.text.strip(), "python")[0]
        body: Line = ((pad("line", LABEL), "dim"), text(name + "  ", "dim"), *code)
        rows.append(
            Row(gutter=((" ", "text"),), body=body, selects=place.ref, opens=place.ref, key="line")
        )
    for advice in cause.advice:
        rows.append(BLANK)
        lines = wrap(advice.text, room)
        for index, line in enumerate(advice.code.split("\n") if advice.code else ()):
            body = ((pad("" if index else "fix", LABEL), "dim"), text(line, "good"))
            key = "" if index else "fix"
            rows.append(Row(gutter=((" ", "text"),), body=body, key=key, copies=advice.code))
        for index, line in enumerate(lines):
            label = "fix" if not advice.code and not index else ""
            role: Role = "dim" if advice.code else "text"
            rows.append(
                Row(gutter=((" ", "text"),), body=((pad(label, LABEL), "dim"), (line, role)))
            )
    rows.append(BLANK)
    limit = wrap(record.reason.splitlines()[0], room) if record.reason else []
    lines = wrap(record.reason, room) if view.torch_text else limit[:2]
    for index, line in enumerate(lines):
        label = "" if index else "torch"
        rows.append(
            Row(gutter=((" ", "text"),), body=((pad(label, LABEL), "dim"), (line, "faint")))
        )
    return Content("why", rows=rows, start="fix")


def _pair(label: str, value: str, note: str, role: Role = "dim") -> Row:
    return Row(
        gutter=((" ", "text"),),
        body=((pad(label, LABEL), "dim"), text(value, "strong"), text(f"   {note}", role)),
    )
