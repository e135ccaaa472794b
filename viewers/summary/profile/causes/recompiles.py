"""Compiling again: seconds, against the milliseconds of a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.trace.records import CallStart
from viewers.summary.findings import recompile_title
from viewers.summary.profile.causes.cause import Cause, Suggestion
from viewers.summary.profile.index import Index
from viewers.summary.profile.rows import RegionRow
from viewers.summary.recompiles import RecompileCause, recompile_causes
from viewers.words import plural, seconds_text


def recompiles(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    causes = recompile_causes(index.recording)
    calls = len({start.call for start in index.recording.all(CallStart)})
    for cause in causes:
        seconds = cause.seconds
        if seconds is None:
            continue
        run = index.head.compiled.median
        notes = [f"{plural(len(cause.calls), 'call')} of {calls} compiled again"]
        if run > 0:
            each = seconds / max(1, len(cause.calls))
            notes.append(f"{seconds_text(each)} each, as long as {each / run:,.0f} calls take")
        guard = cause.frames[0].why
        if guard is not None:
            notes.append(f"the guard that fails: {guard.guard}")
        yield Cause(
            kind="recompile",
            title=_title(cause, calls),
            seconds=seconds,
            once=True,
            place=cause.place,
            notes=tuple(notes),
            fixes=cause.advice,
            suggestions=_suggestions(cause),
            refs=(cause.place.ref,) if cause.place else (),
        )
    if index.head.compiled_again and not causes:
        again = plural(index.head.compiled_again, "graph")
        yield Cause(
            kind="recompile",
            title=f"{again} compiled while the clock ran: these times say nothing",
            seconds=index.head.compiled.median,
            once=True,
        )


def _title(cause: RecompileCause, calls: int) -> str:
    """`each call with another temperature compiles again: 1.0 → 1.25 → 1.5`."""
    if len(cause.calls) < 2 or len(cause.calls) < calls - 1:
        return recompile_title(cause)
    shown = cause.values if len(cause.values) <= 4 else (*cause.values[:3], "…")
    return f"each call recompiles for another {cause.change.name}: {' → '.join(shown)}"


def _suggestions(cause: RecompileCause) -> tuple[Suggestion, ...]:
    """A size that changes can be marked dynamic from outside."""
    name, dot, rest = cause.change.name.partition(".size(")
    if not dot or not rest[:-1].isdigit() or not name.isidentifier():
        return ()
    option = f"{name}:{rest[:-1]}"
    return (
        Suggestion(
            id=f"mark-dynamic {option}",
            words=f"mark dimension {rest[:-1]} of {name} as dynamic",
            options=("--mark-dynamic", option),
        ),
    )
