"""Where Dynamo is: stack and locals before an instruction, the growing graph and its guards."""

from __future__ import annotations

import re

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import FrameEnd, GraphBreak, Node, StackValue, Step
from tcw.viewers.kit.cells import cut, keep_end, pad
from tcw.viewers.kit.spans import Line, Role, Span, text
from tcw.viewers.labels import line_text
from tcw.viewers.panes.rows import BLANK, Content, Row, Rows, empty, text_row
from tcw.viewers.panes.view import View
from tcw.viewers.summary.steps import StepBook, StepState, book_of
from tcw.viewers.words import listed, plural, tensor_text

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
    return text_row(
        name,
        *value_line(view, state, value),
        gutter=gutter,
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
            graph_break.compile_id == track.compile_id and graph_break.attempt == track.attempt - 1
            for graph_break in view.recording.all(GraphBreak)
        )
        why = " (restarted at the break)" if broke else " (restarted)"
    return f"attempt {track.attempt + 1}{of}{why}"


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
    head = text_row((f" locals of {state.frame.function}", "strong"))
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


MOST = 200
"""Guards that are listed, the last ones first."""


def growing_graph(view: View, width: int) -> Content:
    """The nodes so far; below them what the instruction will add, if that is known."""
    state = state_of(view)
    if state is None:
        return Content("graph", rows=none_recorded(view, width))
    nodes, compile_id = state.nodes, state.step.compile_id
    recorded = view.recording.nodes(compile_id)
    coming = state.coming
    count = len(nodes)
    tail = _tail(coming, width)
    fresh = count - len(state.step.nodes)
    last = state.track.final[:count]

    def make(index: int) -> Row:
        if index >= count:
            return tail[index - count]
        return _growing_node(compile_id, nodes[index], last[index], recorded, index >= fresh, width)

    row_refs = [refs.node(compile_id, name) for name in last]
    rows = Rows(count + len(tail), make, [*row_refs, *[""] * len(tail)])
    right = f"{plural(count, 'node')}  {plural(state.guards, 'guard')}"
    start = tail[0].key if tail and tail[0].key else f"fx:{compile_id}/{last[-1]}" if last else ""
    return Content("graph", compile_id, ((right, "dim"),), rows, start, tracks=True)


def _growing_node(
    compile_id: str, name: str, last: str, recorded: dict[str, Node], fresh: bool, width: int
) -> Row:
    node = recorded.get(last)
    given = node.op in ("placeholder", "get_attr") if node else name.startswith("l_")
    role: Role = "strong" if fresh else "dim" if given else "text"
    shape = tensor_text(node.value) if node is not None and node.value is not None else ""
    room = width - 8
    words = keep_end(name, room) if given else cut(name, room)
    body: Line = (text(words, role),)
    if shape and len(words) + len(shape) + 3 < room:
        body = (text(pad(words, min(18, room)), role), text(f" {shape}", "faint"))
    ref = refs.node(compile_id, last)
    return Row(
        gutter=((line_text(node.location) if node else "     ", "faint"),),
        body=body,
        ref=ref,
        key=ref,
        copies=name,
    )


def _tail(coming: object, width: int) -> list[Row]:
    """`▸ weights   this call will add it`."""
    if coming is None:
        return [text_row(("what it adds is not known yet", "faint"), gutter=(("   ▸ ", "accent"),))]
    names = list(coming)  # type: ignore[call-overload]
    if not names:
        return [text_row(("adds nothing", "faint"), gutter=(("   ▸ ", "accent"),))]
    words = "this call will add it" if len(names) == 1 else f"will add {plural(len(names), 'node')}"
    shown = cut(listed(names, 2), max(8, width - 12 - len(words)))
    return [
        text_row(
            (shown, "title"), (f"   {words}", "dim"), gutter=(("   ▸ ", "accent"),), key="coming"
        )
    ]


def growing_guards(view: View, width: int) -> Content:
    """The guards so far, the last first; if the steps do not name them, how many came when."""
    state = state_of(view)
    if state is None:
        return Content("guards", rows=none_recorded(view, width))
    right: Line = ((f"{state.guards}, last first", "dim"),)
    return Content("guards", right=right, rows=guard_rows(view, state, width), still=True)


def guard_rows(view: View, state: StepState, width: int) -> list[Row]:
    if not state.guards:
        return empty(width, "no guard is installed yet")
    known = state.known_guards[-MOST:]
    if not known:
        return _counted(view, state, width)
    rows = []
    column = min(max(len(guard.name) for guard in known) + 2, max(12, width // 2))
    fresh = len(state.step.new_guards)
    for place, guard in enumerate(reversed(known)):
        where = guard.by.location
        kind = guard.kind.lower().replace("_", " ")
        shown = keep_end(guard.name or "global state", column - 2)
        rows.append(
            text_row(
                (pad(shown, column), "strong" if place < fresh else "text"),
                (kind, "dim"),
                gutter=((line_text(where), "faint"),),
                ref=refs.source(where.file, where.line),
                key=f"guard:{len(known) - place}",
                copies=guard.name,
            )
        )
    return rows


def _counted(view: View, state: StepState, width: int) -> list[Row]:
    """Which instructions installed guards, from the counts of the steps, the last first."""
    steps = state.track.steps
    rows: list[Row] = []
    for index in range(state.index, 0, -1):
        came = steps[index].guards - steps[index - 1].guards
        if came > 0:
            rows.append(_came(steps[index - 1], came, index == state.index, width))
        if len(rows) >= 20 or state.index - index > 400:
            break
    return rows or empty(width, f"{plural(state.guards, 'guard')}, from before the first step")


def _came(step: Step, came: int, fresh: bool, width: int) -> Row:
    words = cut(f"{step.opcode.lower()} {step.argument}", max(8, width - 24))
    return text_row(
        (f"+{came}  ", "strong" if fresh else "text"),
        (words, "text" if fresh else "dim"),
        (f"  {step.function}", "faint"),
        gutter=((line_text(step.location), "faint"),),
        ref=refs.source(step.location.file, step.location.line),
        key=f"came:{step.step}",
    )
