"""The growing graph and its guards while Dynamo traces."""

from __future__ import annotations

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Node, Step
from tcw.viewers.kit.cells import cut, keep_end, pad
from tcw.viewers.kit.spans import Line, Role, text
from tcw.viewers.panes.names import line_text
from tcw.viewers.panes.rows import Content, Row, Rows, empty
from tcw.viewers.panes.stepping import none_recorded, state_of
from tcw.viewers.panes.view import View
from tcw.viewers.summary.steps import StepState
from tcw.viewers.words import listed, plural, tensor_text

MOST = 200
"""Guards that are listed, the last ones first."""


def graph(view: View, width: int) -> Content:
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
        return _node(compile_id, nodes[index], last[index], recorded, index >= fresh, width)

    row_refs = [refs.node(compile_id, name) for name in last]
    rows = Rows(count + len(tail), make, [*row_refs, *[""] * len(tail)])
    right = f"{plural(count, 'node')}  {plural(state.guards, 'guard')}"
    start = tail[0].key if tail and tail[0].key else f"fx:{compile_id}/{last[-1]}" if last else ""
    return Content("graph", compile_id, ((right, "dim"),), rows, start, tracks=True)


def _node(
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
        return [
            Row(gutter=(("   ▸ ", "accent"),), body=(("what it adds is not known yet", "faint"),))
        ]
    names = list(coming)  # type: ignore[call-overload]
    if not names:
        return [Row(gutter=(("   ▸ ", "accent"),), body=(("adds nothing", "faint"),))]
    words = "this call will add it" if len(names) == 1 else f"will add {plural(len(names), 'node')}"
    shown = cut(listed(names, 2), max(8, width - 12 - len(words)))
    return [
        Row(
            gutter=(("   ▸ ", "accent"),),
            body=(text(shown, "title"), (f"   {words}", "dim")),
            key="coming",
        )
    ]


def guards(view: View, width: int) -> Content:
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
            Row(
                gutter=((line_text(where), "faint"),),
                body=(
                    text(pad(shown, column), "strong" if place < fresh else "text"),
                    text(kind, "dim"),
                ),
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
    return Row(
        gutter=((line_text(step.location), "faint"),),
        body=(
            text(f"+{came}  ", "strong" if fresh else "text"),
            text(words, "text" if fresh else "dim"),
            text(f"  {step.function}", "faint"),
        ),
        ref=refs.source(step.location.file, step.location.line),
        key=f"came:{step.step}",
    )
