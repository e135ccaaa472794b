"""What came of a compile: its kernels, its fusion, its memory, a few rows of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.trace.records import MemoryPlan
from viewers.kit.spans import Line, text
from viewers.panes import fusion, kernels, memory
from viewers.panes.rows import BLANK, Content, Row
from viewers.panes.targets import ToStage
from viewers.panes.view import View

KERNELS, PAIRS, PLAN = 8, 6, 2
"""Most rows of each."""


def rows(view: View, width: int) -> list[Row]:
    """The stages that the compile reached; of the kernels none where their pane stands beside."""
    found: list[Row] = []
    if view.kernels() and "kernels" not in view.beside:
        listed = kernels.content(view, width)
        found += _stage(view, "kernels", listed.right, listed.rows, KERNELS)
    if view.facts.pairs.get(fusion.graph_of(view)):
        listed = fusion.decisions(view, width)
        found += _stage(view, "fusion", listed.right, listed.rows, PAIRS)
    graph = view.loop_graph()
    if any(plan.graph == graph for plan in view.recording.all(MemoryPlan)):
        planned: Content = memory.content(view, width)
        found += _stage(view, "memory", (), planned.rows[:PLAN], PLAN)
    return found


def _stage(view: View, name: str, right: Line, listed: Sequence[Row], most: int) -> list[Row]:
    """The heading, which opens the stage, and the first of its rows; they cannot be selected."""
    target = ToStage(view.compile_id, name)
    head = Row(body=(text(f" {name}", "strong"),), right=right, at=target, opens=target)
    shown = [
        replace(row, key="", at=None, opens=None, decision="", ref="", selects="")
        for row in listed[:most]
    ]
    while shown and not shown[-1].text.strip():
        shown.pop()
    more = [Row(body=(("    …", "faint"),))] if len(listed) > most and most > PLAN else []
    return [BLANK, head, *shown, *more]
