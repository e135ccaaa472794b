"""One region of a profile, side by side: the eager operations, and what replaced them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from tcw.compiler.trace import refs
from tcw.compiler.trace.precision import worst_output
from tcw.compiler.trace.records import CompiledStep, EagerOperation, KernelPrecision
from tcw.viewers.collected import grouped
from tcw.viewers.kit.cells import cut
from tcw.viewers.kit.figures import TimeUnit, unit_of
from tcw.viewers.kit.lines import TextLine
from tcw.viewers.kit.spans import Line, Role, text
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.labels import operation_label, short_target
from tcw.viewers.panes import profiled
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_rows
from tcw.viewers.panes.targets import ToKernel
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.summary.profile.work import SideWork, work_of
from tcw.viewers.tables.machine import WORK_ALIGN, WORK_DROP, work_cells, work_heads
from tcw.viewers.tables.precision import MARKS
from tcw.viewers.words import error_text, plural


def eager(view: View, width: int) -> Content:
    """The operations that eager runs, equal ones of repeated layers once."""
    profile, row = view.derived.profile, profiled.chosen(view)
    if profile is None or row is None:
        return Content("eager", rows=empty(width, *profiled.not_measured(view)))
    if not row.operations:
        rows = empty(width, "nothing: eager has no such operation", "it came with the capture")
        return Content("eager", plain(row.label), rows=rows)
    groups = _same(row.operations)
    cells = [_operation(profile, group, unit_of(profile.head)) for group in groups]
    head, *lines, whole = _lines("operation", cells, row.eager_work, unit_of(profile.head), width)
    rows = text_rows([head], width)
    for group, one in zip(groups, lines, strict=True):
        rows.append(_of_operation(group[0], text_rows([one], width)[0]))
    rows += _sum(row.eager_work, whole, unit_of(profile.head), width)
    right: Line = ((plural(len(row.operations), "operation"), "dim"),)
    return Content("eager", plain(row.label), right, rows, head=1)


def compiled(view: View, width: int) -> Content:
    """The kernels and calls that replace them; `⏎` leads to a kernel's source."""
    profile, row = view.derived.profile, profiled.chosen(view)
    if profile is None or row is None:
        return Content("compiled", rows=empty(width, *profiled.not_measured(view)))
    if not row.steps:
        rows = empty(
            width, "nothing: compiling removed it", "its results need no code of their own"
        )
        return Content("compiled", plain(row.label), rows=rows)
    known = {one.kernel: one for one in profile.precision}
    groups = _repeated(profile, row)
    cells = [_step(view, profile, group, unit_of(profile.head)) for group in groups]
    head, *lines, whole = _lines("kernel", cells, row.compiled_work, unit_of(profile.head), width)
    rows = text_rows([head], width)
    for group, one in zip(groups, lines, strict=True):
        rows.append(_of_step(profile, group[0], text_rows([one], width)[0]))
        rows += _precision(known.get(group[0].kernel), width)
    rows += _sum(row.compiled_work, whole, unit_of(profile.head), width)
    right: Line = ((plural(len(row.steps), "step"), "dim"),)
    return Content("compiled", plain(row.label), right, rows, head=1)


def _same(operations: Sequence[EagerOperation]) -> list[list[EagerOperation]]:
    """Equal operations of a line together, in order."""
    return list(grouped(((one.operation, one.location), one) for one in operations).values())


def _repeated(profile: Profile, row: RegionRow) -> list[list[CompiledStep]]:
    """The steps of one region, grouped over repeated layers."""
    found = grouped(
        ((place, re.sub(r"\d+", "*", step.name)), step)
        for region in row.regions
        for place, step in enumerate(profile.index.steps_in(region))
    )
    return list(found.values())


def _lines(
    what: str, rows: list[list[Cell]], work: SideWork, unit: TimeUnit, width: int
) -> list[TextLine]:
    """A head, a line for each row, and their sum."""
    heads: list[Cell] = ["", (what, "dim"), *work_heads(unit)]
    whole: list[Cell] = ["", ("sum", "strong"), *work_cells(work, unit, "strong")]
    drop = [2 + column for column in WORK_DROP]
    return table([heads, *rows, whole], f"rf{WORK_ALIGN}", width - 1, 1, drop)


def _operation(profile: Profile, group: list[EagerOperation], unit: TimeUnit) -> list[Cell]:
    first = group[0]
    target = short_target(first.operation)
    name = (operation_label(target) or target) + (f" ×{len(group)}" if len(group) > 1 else "")
    line = str(first.location.line) if first.location is not None else ""
    return [(line, "faint"), name, *work_cells(work_of(profile.index, group), unit)]


def _of_operation(first: EagerOperation, row: Row) -> Row:
    place = first.location
    said = f"{first.operation}({first.arguments})" if first.arguments else first.operation
    source = refs.source(place.file, place.line) if place is not None else ""
    return replace(row, ref=source, key=f"operation:{first.id}", copies=said)


def _step(view: View, profile: Profile, group: list[CompiledStep], unit: TimeUnit) -> list[Cell]:
    first = group[0]
    kernel = profile.index.kernel_of(first)
    words = view.derived.called.name(kernel) if kernel is not None else short_target(first.name)
    name = words + (f" ×{len(group)}" if len(group) > 1 else "")
    quiet: Role = "dim" if first.kind != "kernel" else "text"
    id = kernel.id if kernel is not None else ""
    return [(id, "faint"), (name, quiet), *work_cells(work_of(profile.index, group), unit)]


def _of_step(profile: Profile, first: CompiledStep, row: Row) -> Row:
    kernel = profile.index.kernel_of(first)
    if kernel is None:
        return replace(row, key=f"step:{first.id}", copies=first.name)
    return replace(row, ref=refs.kernel(kernel.id), at=ToKernel(kernel.id), copies=first.name)


def _precision(found: KernelPrecision | None, width: int) -> list[Row]:
    """How far a kernel's results are from float64, if that was measured."""
    if found is None or (found.within is not False and not found.outputs):
        return []
    worst = worst_output(found)
    if worst is None:
        return []
    said = f"error {error_text(worst.error)}, eager {error_text(worst.eager_error)}"
    if found.within is False:
        said += f", bound {error_text(worst.bound)}: wrong"
    mark, tone = MARKS[found.within is not False]
    role: Role = "bad" if found.within is False else "dim"
    return [Row(body=(("      ", "text"), (f"{mark} ", tone), text(cut(said, width - 9), role)))]


def _sum(work: SideWork, whole: TextLine, unit: TimeUnit, width: int) -> list[Row]:
    stroke = "─" * (cell_len(whole.text.rstrip()) - 1)
    rows = [Row(body=((f" {stroke}", "faint"),)), *text_rows([whole], width)]
    if work.host is not None:
        rows.append(Row(body=((f" {unit.text(work.host)} {unit.name} of the host beside", "dim"),)))
    return [*rows, BLANK]
