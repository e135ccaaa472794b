"""The hottest kernels and calls, and how close they come to the machine's ceilings."""

from __future__ import annotations

import re

from tcw.compiler.trace.records import CompiledStep
from tcw.viewers.collected import grouped
from tcw.viewers.kit.figures import TimeUnit
from tcw.viewers.kit.lines import BLANK, TextLine
from tcw.viewers.kit.table import Cell, heading, table
from tcw.viewers.labels import kernel_label
from tcw.viewers.places import FileNames
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.causes.step_words import bare
from tcw.viewers.summary.profile.rows import where
from tcw.viewers.summary.profile.work import work_of
from tcw.viewers.tables.machine import WORK_ALIGN, work_cells, work_heads
from tcw.viewers.words import numbers_text, plural


def kernels_lines(
    profile: Profile, names: FileNames, width: int, top: int | None, unit: TimeUnit
) -> list[TextLine]:
    """Kernels and calls of the compiled side, slowest first, repeated layers merged."""
    timed = [one for one in profile.index.steps.values() if one.time is not None]
    groups = grouped((_stem(profile, step), step) for step in timed)
    works = [(key, steps, work_of(profile.index, steps)) for key, steps in groups.items()]
    works.sort(key=lambda one: -(one[2].seconds or 0.0))
    shown = works[: top or 8]
    if not shown:
        return []
    rows: list[list[Cell]] = [[("kernel", "dim"), ("line", "dim"), *work_heads(unit)]]
    for (name, place), steps, work in shown:
        rows.append(
            [
                name if len(steps) == 1 else f"{name} ×{len(steps)}",
                (place, "dim"),
                *work_cells(work, unit),
            ]
        )
    more = len(works) - len(shown)
    count = plural(len(profile.index.steps), "kernel or call", "kernels and calls")
    right = f"{count}, slowest first" + (f"; {more} more" if more else "")
    return [BLANK, heading("kernels", right), *table(rows, f"fe{WORK_ALIGN}", width, 2)]


def _stem(profile: Profile, step: CompiledStep) -> tuple[str, str]:
    """What kernels of repeated layers have in common: words and lines."""
    kernel = profile.index.kernel_of(step)
    places = kernel.locations if kernel else ()
    if kernel is None:
        region = profile.region_of(step.id)
        places = region.locations if region else ()
    at = numbers_text(one.line for one in places if one.file == places[0].file)
    row = None if at else profile.row_with(step.id)
    at = at or (plain(where(row)) if row is not None else "")
    if kernel is None or not kernel.generated:
        return (bare(step.name), at)
    return (re.sub(r"_\d+$", "", kernel_label(kernel)), at)
