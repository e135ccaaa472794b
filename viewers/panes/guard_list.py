"""Guards of one compile: what a caller can change one by one, the others by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Guard, Guards
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.kit.spans import Line
from tcw.viewers.panes import stepping
from tcw.viewers.panes.rows import Content, Row, empty, text_rows
from tcw.viewers.panes.stepping import state_of
from tcw.viewers.panes.targets import Fold
from tcw.viewers.panes.view import View
from tcw.viewers.summary.guard_groups import guard_groups
from tcw.viewers.tables.guard_lines import (
    check_words,
    condition_rows,
    guards_lines,
    kinds_lines,
    single_rows,
)
from tcw.viewers.words import plural

MARK = 3
"""Cells before a row: whether it can be opened."""


def guards_of(view: View) -> Guards | None:
    """The last guards of the current compile."""
    found = reversed(view.recording.all(Guards))
    return next((guards for guards in found if guards.compile_id == view.compile_id), None)


def content(view: View, width: int) -> Content:
    """The conditions, then a row a kind; `⏎` shows the single guards of a kind."""
    name = view.compile_id
    record = guards_of(view)
    if record is None:
        state = state_of(view)
        if state is not None and state.step.compile_id == name:
            return replace(stepping.growing_guards(view, width), subject=name)
        return Content("guards", name, rows=empty(width, f"no guards of {name} were recorded"))
    groups = guard_groups(view.recording, record)
    names, main = view.derived.names, view.derived.main_file
    rows: list[Row] = []
    drawn = guards_lines(condition_rows(groups.conditions), names, width - MARK - 1, 0, main)
    for index, (condition, lines) in enumerate(zip(groups.conditions, drawn, strict=True)):
        key = f"guard:{name}:{index}"
        if len(condition.guards) > 1:
            rows += _fold(view, key, lines, condition.guards, width)
        else:
            rows += _rows(condition.guards[0], lines, key, width, "   ")
    for group, kind in zip(
        groups.kinds, kinds_lines(groups.kinds, width - MARK - 1, 0), strict=True
    ):
        rows += _fold(view, f"guards:{name}:{group.kind}", [kind], group.guards, width)
    facts = [plural(record.count, "guard")]
    if record.check_us is not None:
        facts.append(check_words(record.check_us))
    return Content("guards", name, ((" · ".join(facts), "dim"),), rows)


def _fold(
    view: View, key: str, lines: Sequence[TextLine], guards: Sequence[Guard], width: int
) -> list[Row]:
    """Several guards in one row; each of them if it is unfolded."""
    opened = key in view.unfolded
    gutter: Line = ((" ▾ " if opened else " ▸ ", "faint"),)
    copies = "\n".join(code for one in guards for code in one.code)
    first, *others = text_rows(lines, width - MARK)
    rows = [replace(first, gutter=gutter, key=key, opens=Fold(key), copies=copies)]
    rows += [replace(other, gutter=(("   ", "text"),)) for other in others]
    if opened:
        names, main = view.derived.names, view.derived.main_file
        drawn = guards_lines(single_rows(guards), names, width - MARK - 3, 0, main)
        for index, (guard, each) in enumerate(zip(guards, drawn, strict=True)):
            rows += _rows(guard, each, f"{key}:{index}", width, "     ")
    return rows


def _rows(guard: Guard, lines: Sequence[TextLine], key: str, width: int, gutter: str) -> list[Row]:
    """One guard; its source line is selected with it."""
    place = guard.location
    ref = refs.source(place.file, place.line) if place else ""
    return [
        replace(
            row,
            gutter=((gutter, "faint"),),
            ref="" if at else ref,
            key="" if at else key,
            copies="" if at else "\n".join(guard.code),
        )
        for at, row in enumerate(text_rows(lines, width - len(gutter)))
    ]
