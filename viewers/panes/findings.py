"""What needs attention, by measured cost: one entry a cause or site, with its line and its fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from tcw.compiler.trace.records import MemoryPlan
from tcw.viewers.kit.cells import pad, pad_left, wrap
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Line, Role, Span
from tcw.viewers.panes import fusion, kernel, memory_chart
from tcw.viewers.panes.rows import BLANK, Content, Row, text_row, text_rows
from tcw.viewers.panes.targets import ToFinding, ToStage
from tcw.viewers.panes.view import View
from tcw.viewers.summary.findings import Finding
from tcw.viewers.tables.findings import finding_lines, role_of
from tcw.viewers.words import plural

COST = 8
"""Minimum number of cells of a cost."""
NARROW = 100
FEW = 2
"""With at most this many findings, the results of the compile are listed below them."""
KERNELS, PAIRS, PLAN = 8, 6, 2
"""Maximum number of rows of each of its stages; pairs may have those that kernels leave."""


def content(view: View, width: int) -> Content:
    rows: list[Row] = _redacted(view, width)
    costs = max((COST, *(cell_len(one.cost) for one in view.summary.findings)))
    narrow = width < NARROW
    for index, finding in enumerate(view.summary.findings):
        rows.extend(_finding(view, index, finding, width, costs))
        if not narrow:
            rows.append(BLANK)
    rows.append(_rest(view, bool(view.summary.findings), costs))
    few = len(view.summary.findings) <= FEW
    if few and view.over and not view.presenting:
        rows += _came_of_it(view, width)
    right: tuple[Span, ...] = (("ranked by measured cost", "dim"),)
    return Content(
        "findings", right=right, rows=rows, start=str(ToFinding(view.finding)), tracks=True
    )


def _redacted(view: View, width: int) -> list[Row]:
    """What was taken out of the trace, if anything was."""
    told = [warning.message for warning in view.summary.warnings if warning.code == "redacted"]
    return [
        text_row((" · " if first else "   ", "faint"), (line, "warn"))
        for message in told
        for first, line in zip(
            (True, *[False] * len(message)), wrap(message, width - 4), strict=False
        )
    ]


def _finding(view: View, index: int, finding: Finding, width: int, costs: int) -> list[Row]:
    cost = pad_left(finding.cost, costs)
    if width >= NARROW:
        lines = finding_lines(finding, view.derived.names, width - 2, cost, costs + 5)
    else:
        lines = _in_two_lines(finding, cost)
    head, *more = text_rows(lines, width, indent=1)
    head = replace(
        head,
        selects=finding.place.ref if finding.place else "",
        at=ToFinding(index),
        copies=finding.code,
    )
    return [head, *more]


def _in_two_lines(finding: Finding, cost: str) -> list[TextLine]:
    """Where there is little room: title and notes, then its line's number and the fix."""
    notes = f"; {', '.join(finding.notes)}" if finding.notes else ""
    role = role_of(finding)
    head = line((f"{finding.glyph}  {cost}  ", role), (finding.title, "strong"), notes, fixed=True)
    tried = finding.fix
    fix = tried.advice if tried else finding.fixes[0] if finding.fixes else None
    place = pad(f":{finding.place.line}", 6) if finding.place is not None else ""
    words = (fix.code.split("\n")[0] or fix.text) if fix is not None else ""
    if not place and not words:
        return [head]
    code: Role = "good" if fix is not None and fix.code else "text"
    mark = "✓ " if tried else ""
    return [head, line("  ", (place, "dim"), (mark + words, code), fixed=True)]


def _rest(view: View, any_finding: bool, costs: int) -> Row:
    summary = view.summary
    lead = " ·" + " " * (costs + 4)
    if any_finding:
        words = "no other finding"
    elif summary.verdict.tone == "failed":
        words = "no finding in what was recorded before"
    elif not view.over:
        words = "nothing needs attention so far" if view.live else "no finding in what was recorded"
    else:
        compiles = plural(summary.compiles, "compile")
        profile = view.derived.profile
        lost = profile is not None and any(cause.lost for cause in profile.causes)
        lead_in = "" if lost else "nothing needs attention: "
        words = f"{lead_in}no break, no recompile in {compiles}"
    return text_row((lead, "faint"), (words, "dim"))


def _came_of_it(view: View, width: int) -> list[Row]:
    """What a compile produced that needs no attention: a few kernels, pairs and lines of its
    memory; no kernels where their pane stands beside."""
    found: list[Row] = []
    left = PAIRS
    if view.kernels() and "kernels" not in view.beside:
        listed = kernel.kernel_list(view, width)
        found += _stage(view, "kernels", listed.right, listed.rows, KERNELS)
        left += max(0, KERNELS - len(listed.rows))
    if view.derived.pairs.get(fusion.graph_of(view)):
        listed = fusion.decisions(view, width)
        found += _stage(view, "fusion", listed.right, listed.rows, left)
    graph = view.loop_graph()
    if any(plan.graph == graph for plan in view.recording.all(MemoryPlan)):
        planned: Content = memory_chart.content(view, width)
        found += _stage(view, "memory", (), planned.rows[:PLAN], PLAN)
    return found


def _stage(view: View, name: str, right: Line, listed: Sequence[Row], most: int) -> list[Row]:
    """The heading, which opens the stage, and the first of its rows; they cannot be selected."""
    target = ToStage(view.compile_id, name)
    head = text_row((f" {name}", "strong"), right=right, at=target)
    shown = [
        replace(row, key="", at=None, opens=None, decision="", ref="", selects="")
        for row in listed[:most]
    ]
    while shown and not shown[-1].text.strip():
        shown.pop()
    item = "decision" if any(row.decision for row in listed) else "key"
    hidden = sum(bool(getattr(row, item)) for row in listed[most:])
    more = [text_row((f"    … {hidden} more", "faint"))] if hidden and most > PLAN else []
    return [BLANK, head, *shown, *more]
