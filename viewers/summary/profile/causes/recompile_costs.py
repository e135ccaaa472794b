"""Recompiles: seconds, compared with the milliseconds of a call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tcw.compiler.trace.records import Advice, CallStart, EagerFallback
from tcw.viewers.collected import grouped
from tcw.viewers.summary.findings import recompile_title
from tcw.viewers.summary.place import Place
from tcw.viewers.summary.profile.causes.cause import DYNAMIC, Cause, Suggestion
from tcw.viewers.summary.profile.causes.remedies import of_recompile
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.summary.recompiles import RecompileCause, recompile_causes
from tcw.viewers.words import plural, seconds_text


def recompiles(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    calls = len({start.call for start in index.recording.all(CallStart)})
    groups = _by_value(recompile_causes(index.recording))
    given_up = _given_up(index, groups)

    def compiles(causes: Iterable[RecompileCause]) -> int:
        return sum(len(cause.frames) for cause in causes)

    for causes in groups:
        known = [cause.seconds for cause in causes if cause.seconds is not None]
        if known:
            more = given_up if causes is max(groups, key=compiles) else ()
            yield _cause(index, causes, sum(known), calls, more)
    if index.head.compiled_again and not groups:
        again = plural(index.head.compiled_again, "graph")
        yield Cause(
            kind="recompile",
            title=f"{again} compiled, for a reason that was not recorded",
            seconds=index.head.compiled.median,
            once=True,
        )


def _given_up(index: Index, groups: Iterable[Iterable[RecompileCause]]) -> tuple[str, ...]:
    """Which recompiled functions torch runs eagerly from then on, one phrase each."""
    ids = [one for causes in groups for cause in causes for one in cause.compile_ids]
    frames = {compile_id.partition("/")[0] for compile_id in ids}
    stopped = dict.fromkeys(
        fallback.function
        for fallback in index.recording.all(EagerFallback)
        if fallback.by_limit and fallback.compile_id.partition("/")[0] in frames
    )
    return tuple(f"{one} runs eagerly since the recompile limit was reached" for one in stopped)


def _by_value(causes: Iterable[RecompileCause]) -> list[list[RecompileCause]]:
    """Causes that concern one value, first call first. Which line made torch depend on it may be
    known for only one of them, or be another one each time."""
    ordered = sorted(causes, key=lambda cause: cause.calls)
    return list(
        grouped(((cause.change.name, cause.functions), cause) for cause in ordered).values()
    )


def _cause(
    index: Index, causes: list[RecompileCause], seconds: float, calls: int, more: Sequence[str]
) -> Cause:
    first = causes[0]
    again = dict.fromkeys(call for cause in causes for call in cause.calls if call)
    repeated = sum(cause.repeated for cause in causes)
    notes = list(more)
    if again:
        notes.append(f"{len(again)} of {plural(calls, 'call')} compiled again")
    if repeated:
        notes.append(f"compiled again {plural(repeated, 'time')} with the same inputs")
    run = index.head.compiled.median
    if run > 0:
        each = seconds / max(1, len(again) + repeated)
        as_long = f"as long as {each / run:,.0f} calls"
        notes.append(f"{seconds_text(each)} each time, {as_long}")
    guard = first.frames[0].why
    if guard is not None:
        notes.append(f"the guard that fails: {guard.guard}")
    place = next((cause.place for cause in causes if cause.place), None)
    return Cause(
        kind="recompile",
        title=_title(causes, len(again), calls),
        seconds=seconds,
        once=True,
        place=place,
        notes=tuple(notes),
        fixes=_fixes(causes, len(again), place),
        suggestions=_suggestions(index, causes, place),
    )


def _fixes(causes: list[RecompileCause], again: int, place: Place | None) -> tuple[Advice, ...]:
    """After a second recompile, only advice to change the code: automatic dynamic did not help."""
    advice = causes[-1].advice
    if again < 2:
        return advice
    fixes = [one for one in advice if one.code] or list(advice)
    if place is not None and re.search(r"\bmath\.\w+\(", place.text):
        code = re.sub(r"\bmath\.", "torch.", place.text.strip())
        text = f"with {causes[0].change.name} as a tensor: the math module needs a plain number"
        fixes.insert(0, Advice(text=text, code=code))
    return tuple(fixes)


def _title(causes: list[RecompileCause], again: int, calls: int) -> str:
    """`each call recompiles for a different temperature: 1.0 → 1.25 → 1.5`."""
    if again < 2 or again < calls - 1:
        return recompile_title(causes[0])
    values: list[str] = []
    for cause in causes:
        values += cause.values[1:] if values[-1:] == list(cause.values[:1]) else cause.values
    shown = values if len(values) <= 4 else [*values[:3], "…"]
    return f"each call recompiles for a different {causes[0].change.name}: {' → '.join(shown)}"


def _suggestions(
    index: Index, causes: list[RecompileCause], place: Place | None
) -> tuple[Suggestion, ...]:
    """Make dynamic first only what changed, then everything; the latter helps only if a size or a
    number changed."""
    name = causes[0].change.name
    advice = [one for cause in causes for one in cause.advice]
    suggestions = of_recompile(index.recording, name, advice, place)
    numeric = any(
        cause.change.is_size
        or all(_NUMBER.fullmatch(one) for one in (cause.change.expected, cause.change.seen))
        for cause in causes
    )
    return (*suggestions, DYNAMIC) if numeric else suggestions


_NUMBER = re.compile(r"-?(\d+(\.\d*)?(e[+-]?\d+)?|inf)|nan", re.IGNORECASE)
