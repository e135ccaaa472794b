"""`--show fusion`: what was fused, and what was kept apart by which rule, counted."""

from __future__ import annotations

from collections import Counter

from compiler.trace.records import SchedulerNode
from viewers.summary import GraphFusion, Pair, rule_words
from viewers.text.lines import BLANK, Line, line
from viewers.text.sections import View
from viewers.text.table import Cell, heading, table
from viewers.words import bytes_text, number, plural

EXAMPLES = 3
"""Reasons shown per rule; the rest are counted."""


def section(view: View) -> list[Line]:
    graphs = view.summary.fusion.graphs
    if not graphs:
        return [heading("fusion", "no pairs recorded: no graph reached the scheduler")]
    labels = {(node.graph, node.name): node.label for node in view.recording.all(SchedulerNode)}
    lines: list[Line] = []
    for graph in graphs:
        lines += [*_graph(graph, labels, view.width), BLANK]
    return lines[:-1]


def fusion_line(fused: int, rejected: dict[str, int]) -> str:
    """`9 fused, 12 pairs rejected: 9 something between, 3 no shared data`."""
    text = f"{number(fused)} fused"
    if not rejected:
        return f"{text}, no pairs rejected"
    reasons = ", ".join(f"{number(count)} {rule_words(rule)}" for rule, count in rejected.items())
    return f"{text}, {plural(sum(rejected.values()), 'pair')} rejected: {reasons}"


def _graph(graph: GraphFusion, labels: dict[tuple[str, str], str], width: int) -> list[Line]:
    ended = f" → {plural(graph.groups, 'group')}" if graph.groups is not None else ""
    lines = [heading(f"fusion {graph.graph}", f"{plural(graph.nodes, 'node')}{ended}")]
    fused = [pair for pair in graph.pairs if pair.verdict == "fused"]
    rows: list[list[Cell]] = [
        [
            ("✓", "won"),
            _names(pair, labels),
            bytes_text(pair.shared_bytes) if pair.shared_bytes else "",
            (f"{pair.first} {pair.second}", "dim"),
        ]
        for pair in fused
    ]
    lines += table(rows, "lfrf", width, 2)
    passed = sum(pair.verdict == "passed" for pair in graph.pairs)
    if passed:
        lines.append(
            line(
                ("  ·  ", "dim"),
                f"{plural(passed, 'pair')} could fuse, and one of the two fused elsewhere first",
                hang=5,
            )
        )
    for rule, count in graph.rejected.items():
        lines.append(line(("  ✗  ", "lost"), f"{number(count)} {rule_words(rule)}", hang=5))
        reasons = Counter(
            pair.reason for pair in graph.pairs if pair.verdict == "rejected" and pair.rule == rule
        )
        example = {pair.reason: pair for pair in reversed(graph.pairs) if pair.rule == rule}
        for reason, times in reasons.most_common(EXAMPLES):
            pair = example[reason]
            what = f"{times} × " if times > 1 else ""
            words = reason or "Inductor gives no reason"
            lines.append(
                line(
                    f"       {what}{words}",
                    (
                        f"  e.g. {_names(pair, labels)}"
                        if times > 1
                        else f"  {_names(pair, labels)}",
                        "dim",
                    ),
                    hang=9,
                )
            )
        if len(reasons) > EXAMPLES:
            lines.append(line((f"       … {number(len(reasons) - EXAMPLES)} more reasons", "dim")))
    return lines


def _names(pair: Pair, labels: dict[tuple[str, str], str]) -> str:
    first = labels.get((pair.graph, pair.first), pair.first)
    second = labels.get((pair.graph, pair.second), pair.second)
    return f"{first} + {second}"
