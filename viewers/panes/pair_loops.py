"""Both halves of a pair as loop nests, and what they become, or would become, when fused."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby

from tcw.compiler.protocol.decision import FUSE
from tcw.compiler.trace import refs
from tcw.compiler.trace.records import (
    Decided,
    FusionGroup,
    FusionGroups,
    Kernel,
    LoopLine,
    NestLoops,
    SchedulerNode,
    Shown,
)
from tcw.viewers.kit.spans import Line, Span, text
from tcw.viewers.labels import operations_text
from tcw.viewers.panes.fusion import chosen_pair, decisions, label_of, nodes_of, waiting_decision
from tcw.viewers.panes.loops import textbook_lines
from tcw.viewers.panes.nests import line_of, marked, named_loads, nests, traffic, with_names
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain_lines
from tcw.viewers.summary.fusion import PairResult
from tcw.viewers.words import indent, plural

_TARGET = re.compile(r"^\s*(\w+)")


def loops(view: View, width: int, side: str) -> Content:
    """The loop nests of one half of the pair, `side` A or B."""
    pair = chosen_pair(view)
    if pair is None:
        return Content(side, rows=empty(width, "no pair to show"))
    name = pair.first if side == "A" else pair.second
    other = pair.second if side == "A" else pair.first
    nodes = nodes_of(view, pair.graph, name)
    if not nodes:
        why = f"no scheduler node of {operations_text(name)} was recorded"
        return Content(side, rows=empty(width, why))
    shared = _buffers(nodes) & _buffers(nodes_of(view, pair.graph, other))
    above = [] if view.presenting else [BLANK]
    rows = [*above, *nests(view, nodes, shared), *traffic(nodes, shared), BLANK]
    subject = label_of(view, pair.graph, name)
    return Content(side, subject, ((operations_text(name), "dim"),), rows, still=True)


def loops_or_list(view: View, width: int) -> Content:
    """On a narrow screen: the list; while a decision waits, B, and the list below it."""
    content = decisions(view, width)
    if waiting_decision(view) is None:
        return content
    second = loops(view, width, "B")
    head = text_row((f" {content.name} ", "strong"), *content.right)
    return replace(second, rows=[*second.rows, head, *content.rows])


def if_fused(view: View, width: int) -> Content:
    """The nest that fusion would make of both sides, if the compile asked; else the one it made."""
    pair = chosen_pair(view)
    asked = view.recording.decisions.asked.get(pair.id) if pair is not None else None
    if pair is None or asked is None or view.hidden or _has_gone_on(pair, asked):
        return became(view, width)
    shown = asked.shown
    printed = view.recording.text(shown.if_fused) or view.derived.whole.text(shown.if_fused)
    if not printed and not shown.nest:
        why = "the engine has no loop nest to show before it fuses these two"
        return Content("if fused", rows=empty(width, why))
    nodes = [*nodes_of(view, pair.graph, pair.first), *nodes_of(view, pair.graph, pair.second)]
    first, second = (
        _buffers(nodes_of(view, pair.graph, name)) for name in (pair.first, pair.second)
    )
    rows = [BLANK, *_nested(view, shown.nest, printed, nodes, first & second)]
    return Content("if fused", right=_right(shown), rows=rows)


def _has_gone_on(pair: PairResult, asked: Decided) -> bool:
    """Whether the pair was tested again since the person was asked, with another result or other
    members: what it would have been then says nothing about it now."""
    if pair.verdict == "asked":
        return False
    if pair.verdict == "fused":
        return asked.default != FUSE
    sides = {pair.first, pair.second}
    return bool(pair.round) and all(asked.sides) and set(asked.sides) != sides


def _right(shown: Shown) -> Line:
    """`1 loop nest, 4096 times   sketched`."""
    tops = [line for line in shown.nest if line.variable and not line.depth]
    words = plural(len(tops), "loop nest") if tops else ""
    if len(tops) == 1:
        words += f", {tops[0].size} times"
    spans: list[Span] = [text(words, "dim")]
    if shown.sketched:
        spans.append(("   sketched", "warn"))
    return tuple(spans)


def _nested(
    view: View, nest: tuple[LoopLine, ...], printed: str, nodes: list[SchedulerNode],
    shared: set[str],
) -> list[Row]:  # fmt: skip
    """The nest as a textbook has it, or as it was printed."""
    writers = {buffer: node for node in nodes for buffer in node.writes}
    rows: list[Row] = []
    if not nest:
        for number, words in enumerate(plain_lines(printed.rstrip("\n"))):
            target = _TARGET.match(words)
            node = writers.get(target[1]) if target is not None else None
            rows.append(_statement(view, _printed(words, shared), node, number))
        return rows
    for (depth, loop), block in groupby(
        textbook_lines(nest), key=lambda textbook_line: (textbook_line.depth, textbook_line.loop)
    ):
        blank: Span = (indent(depth), "text")
        name, size = loop
        if name:
            head: Line = (
                blank, ("for ", "keyword"), text(name), (" in ", "keyword"), text(size, "number"),
                (":", "dim"),
            )  # fmt: skip
            rows.append(Row(gutter=(("      ", "faint"),), body=head))
            continue
        statements = [textbook_line.statement for textbook_line in block]
        names = named_loads([statement.text for statement in statements], set(writers))
        for load, name in names.items():
            line = (blank, *marked(f"{name} = {load}", shared))
            rows.append(_statement(view, line, None, len(rows)))
        for statement in statements:
            line = (blank, *marked(with_names(statement.text, names), shared))
            rows.append(_statement(view, line, writers.get(statement.writes), len(rows)))
    return rows


def _printed(words: str, shared: set[str]) -> Line:
    """A line as the engine printed it; `✗ RULE: reads VALUE` refers to the line above."""
    code, mark, rule = words.partition("✗ ")
    return (*marked(code, shared), text(mark + rule, "bad")) if mark else marked(code, shared)


def _statement(view: View, body: Line, node: SchedulerNode | None, number: int) -> Row:
    gutter: Span = line_of(view, node) if node is not None else ("      ", "faint")
    ref = refs.operation(node.graph, node.name) if node is not None else ""
    return Row(gutter=(gutter,), body=body, ref=ref, key=f"{ref}:{number}" if ref else "")


def became(view: View, width: int) -> Content:
    """A's group after fusion: its kernel's loops if that is generated, else its nodes' loops."""
    pair = chosen_pair(view)
    groups = [g for g in view.recording.all(FusionGroups) if pair and g.graph == pair.graph]
    if pair is None or not groups or view.hidden:
        why = "no pair to show" if pair is None else "the final groups were not recorded"
        if view.hidden:
            why = "hidden until you choose"
        elif view.live or view.playhead:
            why = "fusion is not over yet; the groups are known once it is"
        return Content("became", rows=empty(width, why))
    found = {node: group for group in groups[-1].groups for node in group.nodes}
    parts = (nodes_of(view, pair.graph, name) for name in (pair.first, pair.second))
    first, second = (found.get(nodes[0].name) if nodes else None for nodes in parts)
    rows: list[Row] = []
    for group in dict.fromkeys(group for group in (first, second) if group is not None):
        nodes = nodes_of(view, pair.graph, "_".join(group.nodes))
        inner = {b for node in nodes for b in node.reads} & {b for n in nodes for b in n.writes}
        if rows:
            words = f" apart from   {operations_text(group.name)}"
            rows += [BLANK, text_row((words, "dim"))]
        written = _written(view, pair.graph, group)
        if not written:
            rows += [BLANK, *nests(view, nodes, inner)]
        for nest_loops in written:
            printed = view.recording.text(nest_loops.text)
            rows += [BLANK, *_nested(view, nest_loops.lines, printed, nodes, inner)]
    subject = operations_text(first.name) if first is not None else ""
    count = plural(len(first.nodes), "node") if first is not None else ""
    together = "1 group" if first is second else "2 groups"
    return Content("became", subject, ((f"{together} · {count}", "dim"),), rows)


def _written(view: View, graph: str, group: FusionGroup) -> list[NestLoops]:
    """The nests of a group's kernel; [] before code is generated. A node that is computed
    again where it is read is in nests of other groups too."""
    return [
        nest
        for kernel in view.recording.all(Kernel)
        if kernel.graph == graph
        for nest in kernel.nests
        if set(nest.nodes) <= set(group.nodes)
    ]


def _buffers(nodes: list[SchedulerNode]) -> set[str]:
    return {buffer for node in nodes for buffer in (*node.reads, *node.writes)}
