"""Guards of one compile: what a caller can change one by one, the others by kind."""

from __future__ import annotations

import os
from dataclasses import replace

from compiler.trace import refs
from compiler.trace.records import Guard, Guards
from viewers.kit.cells import cut, keep_end, pad
from viewers.kit.spans import Line, text
from viewers.panes import growing
from viewers.panes.rows import Content, Row, empty
from viewers.panes.stepping import state_of
from viewers.panes.targets import Fold
from viewers.panes.view import View
from viewers.summary.guards import Condition, KindGroup, condition_value, guard_groups
from viewers.words import seconds_text

COUNT = 7
"""Cells of the gutter: a count, or the line of a guard."""


def content(view: View, width: int) -> Content:
    """The conditions, then a row a kind; `⏎` shows the single guards of a kind."""
    name = view.compile_id
    record = next(
        (one for one in reversed(view.recording.all(Guards)) if one.compile_id == name), None
    )
    if record is None:
        state = state_of(view)
        if state is not None and state.step.compile_id == name:
            return replace(growing.guards(view, width), subject=name)
        return Content("guards", name, rows=empty(width, f"no guards of {name} were recorded"))
    groups = guard_groups(view.recording, record)
    longest = max((len(one.name) for one in groups.conditions), default=0)
    column = min(longest, max(14, width // 2)) + 2
    rows: list[Row] = []
    for number, condition in enumerate(groups.conditions):
        rows.extend(_condition(view, name, number, condition, column))
    for group in groups.kinds:
        rows.extend(_kind(view, name, group, width, column))
    facts = [str(record.count)]
    if record.check_us is not None:
        facts.append(f"{seconds_text(record.check_us / 1e6)} a check")
    return Content("guards", name, ((" · ".join(facts), "dim"),), rows)


def _condition(
    view: View, compile_id: str, number: int, condition: Condition, column: int
) -> list[Row]:
    guard = condition.guards[0]
    key = f"guard:{compile_id}:{number}"
    several = len(condition.guards) > 1
    shown = keep_end(condition.name, column - 2)
    opened = several and key in view.unfolded
    mark = ("▾ " if opened else "▸ ") if several else "  "
    rows = [
        Row(
            gutter=((_line(guard) if not several else " " * 5, "faint"), (mark, "faint")),
            body=(text(pad(shown, column)), text(condition.value, "accent")),
            right=() if several else _file(view, guard),
            ref="" if several else _ref(guard),
            key=key,
            opens=Fold(key) if several else None,
            copies="\n".join(code for one in condition.guards for code in one.code),
        )
    ]
    if opened:
        rows.extend(
            _guard(view, one, f"{key}:{index}") for index, one in enumerate(condition.guards)
        )
    return rows


def _kind(view: View, compile_id: str, group: KindGroup, width: int, column: int) -> list[Row]:
    key = f"guards:{compile_id}:{group.kind}"
    opened = key in view.unfolded
    words = group.words or group.example or "global state"
    rows = [
        Row(
            gutter=((f"{len(group.guards):>4} ", "strong"), ("▾ " if opened else "▸ ", "faint")),
            body=(
                text(pad(cut(group.kind.lower(), column - 1), column)),
                text(cut(words, width - column - COUNT - 2), "dim"),
            ),
            key=key,
            opens=Fold(key),
        )
    ]
    if opened:
        rows.extend(_guard(view, one, f"{key}:{index}") for index, one in enumerate(group.guards))
    return rows


def _guard(view: View, guard: Guard, key: str) -> Row:
    value = condition_value(guard)
    return Row(
        gutter=((_line(guard), "faint"), ("  ", "faint")),
        body=(
            text("  " + (guard.name or guard.source or "global state")),
            text(f" = {value}" if value else "", "accent" if guard.value else "faint"),
        ),
        right=_file(view, guard),
        ref=_ref(guard),
        key=key,
        copies="\n".join(guard.code),
    )


def _line(guard: Guard) -> str:
    return f"{guard.location.line:>4} " if guard.location else " " * 5


def _file(view: View, guard: Guard) -> Line:
    """The file of a guard's line, where that is not the user's file."""
    place = guard.location
    if place is None or place.file == view.facts.main_file:
        return ()
    return (text(f" {os.path.basename(place.file)} ", "dim"),)


def _ref(guard: Guard) -> str:
    place = guard.location
    return refs.source(place.file, place.line) if place else ""
