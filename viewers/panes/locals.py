"""The local variables of the function that Dynamo traces, as it knows them."""

from __future__ import annotations

from viewers.kit.cells import cut, pad
from viewers.kit.spans import text
from viewers.panes import stack
from viewers.panes.rows import BLANK, Content, Row, empty
from viewers.panes.stepping import none_recorded, state_of, value_row
from viewers.panes.view import View
from viewers.summary.steps import StepState


def rows_of(view: View, state: StepState, width: int) -> list[Row]:
    """One row per name; what the previous instruction stored is highlighted. What torch adds to a
    resume function (`__nested_resume_fns`) comes last."""
    known = dict(sorted(state.locals.items(), key=lambda one: one[0].startswith("__")))
    if not known:
        return empty(width, f"{state.frame.function} has no local variable yet")
    column = min(max(len(name) for name in known) + 2, max(8, width // 3))
    rows = []
    for name, value in known.items():
        fresh = name in state.step.set_locals and state.step.ip > 0
        words = text(" " + pad(cut(name, column - 1), column), "strong" if fresh else "text")
        rows.append(value_row(view, state, value, f"local:{name}", words))
    return rows


def content(view: View, width: int) -> Content:
    state = state_of(view)
    if state is None:
        return Content("locals", rows=none_recorded(view, width))
    count = str(len(state.locals))
    return Content("locals", right=((count, "dim"),), rows=rows_of(view, state, width), still=True)


def frame(view: View, width: int) -> Content:
    """Stack and locals in one pane, if there is no room for two."""
    state = state_of(view)
    if state is None:
        return Content("stack", rows=none_recorded(view, width))
    head = Row(body=(text(f" locals of {state.frame.function}", "strong"),))
    rows = [*stack.rows_of(view, state, width), BLANK, head, *rows_of(view, state, width)]
    right = f"{len(state.stack)}, top first"
    return Content("stack, locals", right=((right, "dim"),), rows=rows, still=True)
