"""Where Dynamo is in a recording, for the panes that show a step."""

from __future__ import annotations

import re

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import FrameEnd, GraphBreak, StackValue, Step
from tcw.viewers.kit.spans import Line, Span, text
from tcw.viewers.panes.rows import Row, empty
from tcw.viewers.panes.view import View
from tcw.viewers.summary.steps import StepBook, StepState, book_of
from tcw.viewers.words import tensor_text

KINDS = {
    "Null": "null",
    "Lazy": "lazy",
    "LazyConstant": "constant",
    "UserMethod": "method",
    "UserFunction": "function",
    "TorchInGraphFunction": "torch function",
    "PythonModule": "python module",
    "GetAttr": "attribute",
    "SymNode": "symbolic number",
}
"""Words for torch's classes of values whose split name says too little."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def book(view: View) -> StepBook:
    """All steps of the trace, those after the reader's place too."""
    return book_of(view.derived.whole)


def state_of(view: View) -> StepState | None:
    """Dynamo's state at the reader's place: `View.step`, else the last step of the current
    compile. None if no step was recorded."""
    steps = view.recording.all(Step)
    step = view.step
    if step is None:
        mine = (one for one in reversed(steps) if one.compile_id == view.compile_id)
        step = next(mine, None)
    return book(view).state(step) if step is not None else None


def none_recorded(view: View, width: int) -> list[Row]:
    """What a pane shows if there is no step."""
    name = view.compile_id or "this recording"
    if view.live:
        return empty(width, f"Dynamo has not run an instruction of {name} yet")
    why = "steps not recorded: --record steps"
    if view.recording.all(Step):
        why = "it was not traced while steps were recorded"
    return empty(width, f"no instruction of {name} was recorded", why)


def kind_words(kind: str) -> str:
    """`UnspecializedBuiltinNNModule` -> `module`, `TorchInGraphFunction` -> `torch function`."""
    if kind in KINDS:
        return KINDS[kind]
    if "NNModule" in kind:
        return "module"
    return _CAMEL.sub(" ", kind).lower()


def value_line(view: View, state: StepState, value: StackValue) -> Line:
    """`%scores  f32 4×8×128×128`, `0.125`, `L['self']`."""
    if value.node:
        last = state.track.last_name(value.node)
        node = view.recording.nodes(state.step.compile_id).get(last)
        shape = f"  {tensor_text(node.value)}" if node is not None and node.value else ""
        return text(f"%{value.node}", "accent"), text(shape, "dim")
    if value.value and value.kind != "Lazy":
        return (text(value.value, "number"),)
    words: list[Span] = [text(value.source or kind_words(value.kind), "text")]
    if value.value:
        words.append(text(f"  {value.value}", "dim"))
    return tuple(words)


def value_row(
    view: View, state: StepState, value: StackValue, key: str, name: Span, gutter: Line = ()
) -> Row:
    """A value of Dynamo's under its name; the node that made it is selected with it."""
    node = refs.node(state.step.compile_id, state.track.last_name(value.node))
    return Row(
        gutter=gutter,
        body=(name, *value_line(view, state, value)),
        ref=node if value.node else "",
        key=key,
        copies=value.node or value.source or value.value,
    )


def attempt_words(view: View, state: StepState) -> str:
    """`attempt 2 of 2 (restarted at the break)`; without the total while it can still grow."""
    track = state.track
    known = book(view).attempts(track)
    ended = any(end.compile_id == track.compile_id for end in view.recording.all(FrameEnd))
    if known == 1 and (ended or track.attempt == 0):
        return ""
    of = f" of {known}" if ended or known > track.attempt + 1 else ""
    why = ""
    if track.attempt:
        broke = any(
            one.compile_id == track.compile_id and one.attempt == track.attempt - 1
            for one in view.recording.all(GraphBreak)
        )
        why = " (restarted at the break)" if broke else " (restarted)"
    return f"attempt {track.attempt + 1}{of}{why}"
