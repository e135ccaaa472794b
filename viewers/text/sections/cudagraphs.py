"""`--show cudagraphs`: what was recorded, how often and why again, and what was not."""

from __future__ import annotations

from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.summary.cudagraphs import CudagraphUse, cudagraph_costs, cudagraph_words
from tcw.viewers.text.sections import SectionView
from tcw.viewers.words import NOT_IN_LOG, bytes_text, plural, seconds_text


def section(view: SectionView) -> list[TextLine]:
    uses, costs = view.summary.cudagraphs, cudagraph_costs(view.recording)
    log = bool(view.summary.not_in_log)
    if not uses and not costs:
        none = "none in this log" if log else "none was recorded, and none was skipped"
        return [heading("cudagraphs", none)]
    lines = [heading("cudagraphs", cudagraph_words(uses) or "none was recorded")]
    lines += table([_row(use) for use in uses], "llrrl", view.width, 2)
    if log:
        lines.append(line(f"  for which sizes, why again, what calls skipped: {NOT_IN_LOG}"))
    for cost in costs:
        at = cost.location
        where = f"{view.names.place(at.file, at.line)}  " if at else ""
        took = f", {seconds_text(cost.seconds)}" if cost.seconds is not None else ""
        lines.append(line(f"  {where}{cost.title}", (took, "dim"), hang=4))
        lines += [line("    ", (note, "dim"), hang=4) for note in cost.notes]
    return lines


def _row(use: CudagraphUse) -> list[Cell]:
    times = plural(len(use.recordings), "recording")
    sizes = len(use.sizes)
    several = f"for {sizes} sets of sizes" if sizes > 1 else ""
    memory = bytes_text(use.bytes) if use.bytes else ""
    name = f"{use.graph} {use.part}".strip()
    return [name, times, seconds_text(use.seconds), memory, several]
