"""Scheduler nodes as rows: their loop nests, the user lines they come from, what they move."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tcw.compiler.trace import refs
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import LoopLine, Node, SchedulerNode
from tcw.viewers.kit.highlight import highlight
from tcw.viewers.kit.spans import Line, Span, text
from tcw.viewers.labels import is_view, short_target
from tcw.viewers.panes.loops import textbook_nest
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain, plain_lines
from tcw.viewers.words import domain_text, indent, plural

_LOAD = re.compile(r"\b([A-Za-z_]\w*)(\[[^\[\]]*\])")


@dataclass
class _Nest:
    """Nodes that run in one loop nest."""

    ranges: tuple[tuple[str, str], ...]
    statements: list[tuple[SchedulerNode, str, bool]] = field(default_factory=list)
    """(node, statement, whether it is the node's last)."""
    reduced: set[str] = field(default_factory=set)
    """Buffers that are finished only after the nest."""
    written: set[str] = field(default_factory=set)


def nests(view: View, nodes: list[SchedulerNode], shared: set[str]) -> list[Row]:
    """Each node's loop nest. Neighbours with the same ranges share one, unless a node reads what
    the nest is still reducing. Buffers in `shared` stand out."""
    rows: list[Row] = []
    open_nest: _Nest | None = None
    for node in nodes:
        loop = textbook_nest(node.nest)
        if loop is None:
            rows.extend(_rows(view, open_nest, shared))
            rows.extend(_printed(node, printed_lines(node.nest, view.recording.text(node.loops))))
            open_nest = None
            continue
        if (
            open_nest is None
            or loop.ranges != open_nest.ranges
            or open_nest.reduced.intersection(node.reads)
        ):
            rows.extend(_rows(view, open_nest, shared))
            open_nest = _Nest(loop.ranges)
        for index, statement in enumerate(loop.body):
            open_nest.statements.append((node, statement, index == len(loop.body) - 1))
        open_nest.written.update(node.writes)
        if node.kind == "reduction":
            open_nest.reduced.update(node.writes)
    rows.extend(_rows(view, open_nest, shared))
    return rows


def _rows(view: View, nest: _Nest | None, shared: set[str]) -> list[Row]:
    if nest is None:
        return []
    rows = _headers(nest.ranges)
    lead: Span = (indent(len(nest.ranges)), "text")
    blank: Span = ("      ", "faint")
    names = named_loads([statement for _, statement, _ in nest.statements], nest.written)
    for load, name in names.items():
        body = (lead, *marked(f"{name} = {load}", shared))
        rows.append(Row(gutter=(blank,), body=body))
    for number, (node, statement, last) in enumerate(nest.statements):
        ref = refs.operation(node.graph, node.name)
        rows.append(
            text_row(
                lead,
                *marked(with_names(statement, names), shared),
                gutter=(line_of(view, node) if last else blank,),
                ref=ref,
                key=f"{ref}:{number}",
            )
        )
    return rows


def named_loads(statements: list[str], written: set[str]) -> dict[str, str]:
    """Names for values that are loaded more than once, as in handwritten code; not for those in
    `written`, which change."""
    count: Counter[str] = Counter()
    for statement in statements:
        value = statement.partition("= ")[2]
        for match in _LOAD.finditer(value):
            if match[1] not in written:
                count[match[0]] += 1
    letters = iter("srqponm")
    return dict(zip((load for load, times in count.items() if times > 1), letters, strict=False))


def with_names(statement: str, names: dict[str, str]) -> str:
    """The statement with the names of `named_loads` in place of the loads."""
    target, sign, value = statement.partition("= ")
    for load, name in names.items():
        value = value.replace(load, name)
    return target + sign + value


def _headers(ranges: tuple[tuple[str, str], ...]) -> list[Row]:
    rows = []
    for depth, (name, size) in enumerate(ranges):
        spans: Line = (
            (indent(depth) + "for ", "keyword"),
            (name, "text"),
            (" in ", "keyword"),
            text(size, "number"),
            (":", "dim"),
        )
        rows.append(Row(gutter=(("      ", "faint"),), body=spans))
    return rows


def printed_lines(nest: Sequence[LoopLine], text: str) -> list[str]:
    """A printed nest: its lines, or its text if the trace has one."""
    return [indent(line.depth) + line.text for line in nest] or plain_lines(text.rstrip("\n"))


def _printed(node: SchedulerNode, printed: list[str]) -> list[Row]:
    ref = refs.operation(node.graph, node.name)
    blank: Span = ("      ", "faint")
    if not printed:
        words = (
            f"{node.label}: a call, no loops"
            if node.kind == "extern"
            else f"{node.label}: {node.kind}"
        )
        return [text_row((words, "dim"), gutter=(blank,), ref=ref, key=ref)]
    return [
        text_row(line, gutter=(blank,), ref=ref, key=f"{ref}:{index}")
        for index, line in enumerate(printed)
    ]


def line_of(view: View, node: SchedulerNode) -> Span:
    """The user line of what the node computes last; `≈` if it is inferred."""
    found = _last_with_line(view, node)
    if found is None or found.location is None:
        return ("      ", "faint")
    words = f"≈{found.location.line}" if found.inferred else str(found.location.line)
    return (f"{words:>5} ", "dim" if found.inferred else "faint")


def place_of(view: View, node: SchedulerNode) -> str:
    """` :18`, in another file than the shown one ` layers.py:18`; "" if no line is known."""
    found = _last_with_line(view, node)
    if found is None or found.location is None:
        return ""
    place = found.location
    file = "" if place.file == view.derived.main_file else view.derived.names.short(place.file)
    return f" {plain(file)}:{place.line}"


def _last_with_line(view: View, node: SchedulerNode) -> Node | None:
    known = view.recording.nodes(node.graph)
    generator = (known.get(origin) for origin in reversed(node.origins))
    return next((one for one in generator if one is not None and one.location is not None), None)


def computes(view: View, node: SchedulerNode) -> str:
    """What a scheduler node computes last, in a word: `amax`; its label where that is unknown, or
    where it is one of several that compute the same nodes."""
    if (node.graph, node.origins) in view.derived.split_origins:
        return node.label
    known = view.recording.nodes(node.graph)
    for origin in reversed(node.origins):
        found = known.get(origin)
        if found is not None and not is_view(found):
            return short_target(found.target)
    return node.label


def marked(statement: str, shared: set[str]) -> Line:
    spans: list[Span] = []
    for words, role in highlight(statement, "python")[0]:
        spans.append((words, "shared" if words in shared else role))
    return tuple(spans)


def traffic(nodes: list[SchedulerNode], shared: set[str]) -> list[Row]:
    reads = list(dict.fromkeys(b for node in nodes for b in node.reads))
    writes = list(dict.fromkeys(b for node in nodes for b in node.writes))
    inside = set(reads) & set(writes)
    reads = [buffer for buffer in reads if buffer not in inside]
    domain = max((node.domain for node in nodes), key=len, default=())
    spans: list[Span] = [("reads ", "dim")]
    for buffer in reads[:4]:
        spans.append(text(buffer + " ", "accent" if buffer in shared else "dim"))
    spans.append(("  writes ", "dim"))
    for buffer in writes[:4]:
        spans.append(text(buffer + " ", "accent" if buffer in shared else "dim"))
    if domain:
        spans.append(text("  over " + domain_text(domain), "faint"))
    return [BLANK, Row(gutter=(("   ", "text"),), body=tuple(spans))]


def content(view: View, width: int) -> Content:
    """The loops of the whole graph, node by node, as the scheduler starts with them."""
    graph = view.loop_graph()
    nodes = [node for (name, _), node in view.recording.operations.items() if name == graph]
    subject = base_graph(graph) or view.compile_id
    if not nodes:
        why = f"no scheduler node of {subject or 'this recording'} was recorded"
        return Content("loops", subject, rows=empty(width, why, view.not_reached("fusion")))
    rows: list[Row] = []
    for node in nodes:
        head: Line = (text(f" {node.name} ", "faint"), text(node.label, "strong"))
        ref = refs.operation(graph, node.name)
        rows += [
            Row(body=head, ref=ref, key=f"node:{node.name}"),
            *nests(view, [node], set()),
            BLANK,
        ]
    right: Line = ((plural(len(nodes), "node"), "dim"),)
    return Content("loops", subject, right, rows)
