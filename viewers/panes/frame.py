"""The function that Dynamo traces, as it knows it before an instruction: stack and locals."""

from __future__ import annotations

from tcw.viewers.kit.cells import cut, pad
from tcw.viewers.kit.spans import Span, text
from tcw.viewers.panes.rows import BLANK, Content, Row, empty
from tcw.viewers.panes.stepping import kind_words, none_recorded, state_of, value_row
from tcw.viewers.panes.view import View
from tcw.viewers.summary.steps import StepState

KIND = 16


def stack(view: View, width: int) -> Content:
    """The symbolic stack, the top first."""
    state = state_of(view)
    if state is None:
        return Content("stack", rows=none_recorded(view, width))
    count = len(state.stack)
    right = f"{count}, top first" if count else "0"
    return Content("stack", right=((right, "dim"),), rows=_stack(view, state, width), still=True)


def local_variables(view: View, width: int) -> Content:
    state = state_of(view)
    if state is None:
        return Content("locals", rows=none_recorded(view, width))
    count = str(len(state.locals))
    return Content(
        "locals", right=((count, "dim"),), rows=locals_of(view, state, width), still=True
    )


def both(view: View, width: int) -> Content:
    """Stack and locals in one pane, if there is no room for two."""
    state = state_of(view)
    if state is None:
        return Content("stack", rows=none_recorded(view, width))
    head = Row(body=(text(f" locals of {state.frame.function}", "strong"),))
    rows = [*_stack(view, state, width), BLANK, head, *locals_of(view, state, width)]
    right = f"{len(state.stack)}, top first"
    return Content("stack, locals", right=((right, "dim"),), rows=rows, still=True)


def _stack(view: View, state: StepState, width: int) -> list[Row]:
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


def locals_of(view: View, state: StepState, width: int) -> list[Row]:
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
