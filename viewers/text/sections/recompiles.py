"""`--show recompiles`: each cause with every frame it recompiled."""

from __future__ import annotations

from tcw.viewers.kit.lines import TextLine, apart, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.summary.findings import recompile_title
from tcw.viewers.summary.recompiles import RecompileCause
from tcw.viewers.tables.findings import advice_lines
from tcw.viewers.tables.places import place_lines
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import plural, seconds_text


def section(view: SectionView) -> list[TextLine]:
    causes = view.summary.recompiles
    if not causes:
        calls = sum(1 for call in view.summary.calls if call.number)
        return [heading("recompiles", f"none in {plural(calls, 'call')}")]
    took = seconds_text(view.summary.recompile_seconds)
    head = heading("recompiles", f"{plural(len(causes), 'cause')}, {took}")
    return [head, *apart(_cause(view, cause) for cause in causes)]


def _cause(view: SectionView, cause: RecompileCause) -> list[TextLine]:
    cost = seconds_text(cause.seconds)
    lines = [line(("↻ ", "warn"), (recompile_title(cause), "strong"), f"  {cost}", hang=4)]
    rows: list[list[Cell]] = [
        [
            (f"call {frame.call}" if frame.call else "", "dim"),
            f"{frame.instead_of} → {frame.compile_id}",
            frame.function,
            frame.change.text,
            (seconds_text(frame.seconds), "warn"),
        ]
        for frame in cause.frames
    ]
    lines += table(rows, "llffr", view.width, 2)
    if cause.place is not None:
        lines += place_lines(cause.place, view.names, 2, view.width)
    for failed in cause.frames[0].record.failed:
        facts = [failed.kind, f"{plural(failed.tested, 'guard')} held" if failed.tested else ""]
        tail = "  " + ", ".join(filter(None, facts))
        head = f"  {failed.entry} failed  "
        lines.append(line((head, "dim"), failed.guard, (tail, "dim"), hang=len(head)))
    lines += advice_lines(cause.advice, 2, view.width)
    return lines
