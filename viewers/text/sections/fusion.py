"""`--show fusion`: what was fused, and how many pairs each rule kept apart."""

from __future__ import annotations

from collections import Counter

from tcw.viewers.kit.lines import TextLine, apart, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.summary.fusion import GraphFusion, PairResult, node_labels, rule_words
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import bytes_text, number, plural

EXAMPLES = 3
"""Maximum number of distinct reasons shown per rule; the rest are counted."""


def section(view: SectionView) -> list[TextLine]:
    graphs = view.summary.fusion.graphs
    if not graphs:
        return [heading("fusion", "no pairs recorded: no graph reached the scheduler")]
    labels = node_labels(view.recording)
    return apart(_graph(graph, labels, view.width) for graph in graphs)


def fusion_line(fused: int, rejected: dict[str, int]) -> str:
    """`9 fused, 12 pairs rejected: 9 with nodes between, 3 no shared data`."""
    text = f"{number(fused)} fused"
    if not rejected:
        return f"{text}, no pairs rejected"
    reasons = ", ".join(f"{number(count)} {rule_words(rule)}" for rule, count in rejected.items())
    return f"{text}, {plural(sum(rejected.values()), 'pair')} rejected: {reasons}"


def _graph(graph: GraphFusion, labels: dict[tuple[str, str], str], width: int) -> list[TextLine]:
    ended = f" → {plural(graph.groups, 'group')}" if graph.groups is not None else ""
    lines = [heading(f"fusion {graph.graph}", f"{plural(graph.nodes, 'node')}{ended}")]
    rows: list[list[Cell]] = [
        [
            ("✓", "good"),
            _names(pair, labels),
            bytes_text(pair.shared_bytes) if pair.shared_bytes else "",
            (f"{pair.first} {pair.second}", "dim"),
        ]
        for pair in graph.pairs
        if pair.verdict == "fused"
    ]
    lines += table(rows, "lfrf", width, 2)
    passed = sum(pair.verdict == "passed" for pair in graph.pairs)
    if passed:
        text = f"{plural(passed, 'pair')} could fuse, but one of the two fused elsewhere first"
        lines.append(line(("  ·  ", "dim"), text, hang=5))
    for rule, count in graph.rejected.items():
        lines.append(line(("  ✗  ", "bad"), f"{number(count)} {rule_words(rule)}", hang=5))
        pairs = [one for one in graph.pairs if one.verdict == "rejected" and one.rule == rule]
        lines += _reasons(pairs, labels)
    return lines


def _reasons(pairs: list[PairResult], labels: dict[tuple[str, str], str]) -> list[TextLine]:
    """The engine's own reasons under one rule, most common first, each with an example pair."""
    example = {pair.reason: pair for pair in reversed(pairs)}
    reasons = Counter(pair.reason for pair in pairs)
    lines = []
    for reason, times in reasons.most_common(EXAMPLES):
        words = reason or "no reason given"
        count, such_as = (f"{times} × ", "e.g. ") if times > 1 else ("", "")
        names = f"  {such_as}{_names(example[reason], labels)}"
        lines.append(line(f"       {count}{words}", (names, "dim"), hang=9))
    if len(reasons) > EXAMPLES:
        lines.append(line((f"       … {number(len(reasons) - EXAMPLES)} more reasons", "dim")))
    return lines


def _names(pair: PairResult, labels: dict[tuple[str, str], str]) -> str:
    first = labels.get((pair.graph, pair.first), pair.first)
    second = labels.get((pair.graph, pair.second), pair.second)
    return f"{first} + {second}"
