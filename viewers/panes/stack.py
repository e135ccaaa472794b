"""Dynamo's symbolic stack before an instruction, the top first."""

from __future__ import annotations

from viewers.kit.cells import cut, pad
from viewers.kit.spans import Span, text
from viewers.panes.rows import Content, Row, empty
from viewers.panes.stepping import kind_words, none_recorded, state_of, value_row
from viewers.panes.view import View
from viewers.summary.steps import StepState

KIND = 16


def rows_of(view: View, state: StepState, width: int) -> list[Row]:
    """A row an entry; those that the instruction before left there stand out."""
    stack = state.stack
    if not stack:
        return empty(width, "the stack is empty")
    fresh = len(state.step.pushed)
    column = min(KIND, max(8, width // 3))
    rows = []
    for place, value in enumerate(stack):
        depth, new = len(stack) - 1 - place, place < fresh
        kind = pad(cut(kind_words(value.kind), column - 1), column)
        name = text(kind, "text" if new else "dim")
        number: Span = (f"{depth:>3} ", "strong" if new else "faint")
        rows.append(value_row(view, state, value, f"stack:{depth}", name, (number,)))
    return rows


def content(view: View, width: int) -> Content:
    state = state_of(view)
    if state is None:
        return Content("stack", rows=none_recorded(view, width))
    count = len(state.stack)
    right = f"{count}, top first" if count else "0"
    return Content("stack", right=((right, "dim"),), rows=rows_of(view, state, width), still=True)
