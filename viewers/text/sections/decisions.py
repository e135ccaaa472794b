"""`--show decisions`: our compiler's choices, by the ids used in override files."""

from __future__ import annotations

from tcw.compiler.trace.records import Decided
from tcw.viewers.collected import grouped
from tcw.viewers.kit.lines import TextLine, apart, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import plural

FEW = 40
"""Maximum number of decisions listed of each kind; `decisions=all` lists every one."""


def section(view: SectionView) -> list[TextLine]:
    decided = list(view.recording.decisions.decided.values())
    if not decided:
        return [heading("decisions", "none recorded: only the tcw engine makes them")]
    kinds = grouped(((one.graph, one.kind), one) for one in decided)
    return apart(_kind(graph, kind, mine, view) for (graph, kind), mine in kinds.items())


def _kind(graph: str, kind: str, decided: list[Decided], view: SectionView) -> list[TextLine]:
    changed = [one for one in decided if one.overridden or one.refused]
    rest = [one for one in decided if one not in changed]
    shown = rest if view.detail == "all" else rest[: max(0, FEW - len(changed))]
    rows = [_row(one) for one in (*changed, *shown)]
    lines = [
        heading(f"decisions {graph} {kind}", plural(len(decided), "decision")),
        *table(rows, "llf", view.width, 2),
    ]
    left = len(rest) - len(shown)
    if left:
        lines.append(line((f"  … {plural(left, 'more', 'more')}: --show decisions=all", "dim")))
    return lines


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def _row(one: Decided) -> list[Cell]:
    numbers = " ".join(f"{name} {_figure(value)}" for name, value in one.numbers.items())
    why = "  ".join(part for part in (one.rule, one.reason, numbers) if part)
    if one.refused:
        return [one.id, (one.choice, "bad"), f"{one.wanted} was refused: {one.refused}"]
    if one.overridden:
        return [one.id, (one.choice, "warn"), f"overridden; the default is {one.default}  {why}"]
    return [one.id, (one.choice, "accent"), (why, "dim")]
