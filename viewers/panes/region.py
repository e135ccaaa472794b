"""One region of a profile: what eager runs, what replaced it, and why regions were lost or won."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from tcw.compiler.trace import refs
from tcw.compiler.trace.precision import worst_output
from tcw.compiler.trace.records import CompiledStep, EagerOperation, KernelPrecision
from tcw.viewers.collected import grouped
from tcw.viewers.command_line import command_line
from tcw.viewers.kit.cells import cut, wrap
from tcw.viewers.kit.figures import TimeUnit, unit_of
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Line, Role, Span
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.labels import operation_label, short_target
from tcw.viewers.panes import profiled
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, prose_rows, text_row, text_rows
from tcw.viewers.panes.targets import ToKernel, ToRegion, ToSuggestion
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile import Profile
from tcw.viewers.summary.profile.causes.cause import Cause
from tcw.viewers.summary.profile.rows import SAME_CALLS_LEAST, RegionRow
from tcw.viewers.summary.profile.work import SideWork, work_of
from tcw.viewers.tables.findings import cause_lines, glyph_of
from tcw.viewers.tables.profile_lines import (
    MARKS,
    WORK_ALIGN,
    WORK_DROP,
    edits_lines,
    outcome,
    work_cells,
    work_heads,
)
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
    for group, text_line in zip(groups, lines, strict=True):
        rows.append(_of_operation(group[0], text_rows([text_line], width)[0]))
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
    known = {precision.kernel: precision for precision in profile.precision}
    groups = _repeated(profile, row)
    cells = [_step(view, profile, group, unit_of(profile.head)) for group in groups]
    head, *lines, whole = _lines("kernel", cells, row.compiled_work, unit_of(profile.head), width)
    rows = text_rows([head], width)
    for group, text_line in zip(groups, lines, strict=True):
        rows.append(_of_step(profile, group[0], text_rows([text_line], width)[0]))
        rows += _precision(known.get(group[0].kernel), width)
    rows += _sum(row.compiled_work, whole, unit_of(profile.head), width)
    right: Line = ((plural(len(row.steps), "step"), "dim"),)
    return Content("compiled", plain(row.label), right, rows, head=1)


def _same(operations: Sequence[EagerOperation]) -> list[list[EagerOperation]]:
    """Equal operations of a line together, in order."""
    return list(
        grouped(
            ((operation.operation, operation.location), operation) for operation in operations
        ).values()
    )


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
    return [text_row("      ", (f"{mark} ", tone), (cut(said, width - 9), role))]


def _sum(work: SideWork, whole: TextLine, unit: TimeUnit, width: int) -> list[Row]:
    stroke = "─" * (cell_len(whole.text.rstrip()) - 1)
    rows = [text_row((f" {stroke}", "faint")), *text_rows([whole], width)]
    if work.host is not None:
        rows.append(text_row((f" {unit.text(work.host)} {unit.name} of the host beside", "dim")))
    return [*rows, BLANK]


INDENT = 3
MOST = 30
"""Causes of other regions that are listed."""
SUGGESTIONS = 4
"""Of one cause."""


def why(view: View, width: int) -> Content:
    profile = view.derived.profile
    if profile is None:
        return Content("why", rows=empty(width, *profiled.not_measured(view)))
    row = profiled.chosen(view) if view.region else None
    own = {*(region.id for region in row.regions), *row.refs} if row is not None else set()
    numbered = list(enumerate(profile.causes))
    mine = [(n, one) for n, one in numbered if own.intersection(profiled.about(one))]
    others = [(n, one) for n, one in numbered if not own.intersection(profiled.about(one))]
    rows: list[Row] = [BLANK]
    for number, cause in mine:
        rows += _cause(view, profile, number, cause, width)
    if row is not None and not mine:
        rows += _unexplained(profile, row, width)
    if others and row is not None:
        words = "the other causes" if mine else "what was found elsewhere"
        rows.append(text_row((f" {words}", "faint")))
    for number, cause in others[:MOST]:
        rows += _cause(view, profile, number, cause, width)
    if len(others) > MOST:
        words = f"{plural(len(others) - MOST, 'smaller one')}: select a region for its own"
        rows.append(text_row((f" {words}", "faint")))
    if not numbered and profile.head.whole_only:
        rows = empty(width, *profiled.not_measured(view))
    elif not numbered and row is None:
        differ = any(region_row.standing != "noise" for region_row in profile.rows)
        why = "for what differs" if differ else "nothing differs by more than noise"
        said = f"no cause was found{' ' if differ else ': '}{why}"
        rows += prose_rows(said, width)
    lost = sum(cause.lost for _, cause in numbered)
    words = f"{lost} lost, {len(numbered) - lost} won" if numbered else ""
    right: Line = ((words, "dim"),) if words else ()
    start = f"reason:{mine[0][0]}" if mine else ""
    subject = plain(row.label) if row is not None else ""
    return Content("why", subject, right, rows, start, tracks=bool(start))


def _cause(view: View, profile: Profile, number: int, cause: Cause, width: int) -> list[Row]:
    key = f"reason:{number}"
    glyph, role = glyph_of(cause)
    cost = cause.cost
    fix = next((advice.code for advice in cause.fixes if advice.code), "")
    lines = wrap(cause.title, width - INDENT - cell_len(cost) - 3)
    rows = [
        text_row(
            (f" {glyph} ", role),
            (lines[0], "strong"),
            right=((cost, role), (" ", "text")),
            key=key,
            selects=cause.place.ref if cause.place is not None else "",
            opens=ToRegion(_region(profile, cause)) if cause.regions else None,
            copies=fix or _command(view, cause) or cause.title,
        )
    ]
    rows += [_indented((line, "strong")) for line in lines[1:]]
    below = text_rows(cause_lines(cause, view.derived.names, width - 1, INDENT), width)
    if cause.place is not None:
        below[0] = replace(below[0], ref=cause.place.ref)
    rows += below
    rows += _tried(profile, number, cause, width)
    return [*rows, BLANK]


def _command(view: View, cause: Cause) -> str:
    """The command that tries the first suggestion; "" if there is none."""
    settings = view.recording.settings
    options = next(
        (suggestion.options for suggestion in cause.suggestions if suggestion.options), ()
    )
    return command_line("profile", settings, options) if settings and options else ""


def _region(profile: Profile, cause: Cause) -> str:
    row = profile.row_of(cause.regions[0])
    return row.key if row is not None else cause.regions[0]


def _indented(*spans: Span) -> Row:
    return text_row(" " * INDENT, *spans)


def _tried(profile: Profile, number: int, cause: Cause, width: int) -> list[Row]:
    """What tcw can try by itself (with `⏎`), or the outcome."""
    known = {one.id: one for one in profile.trials}
    rows = []
    for place, suggestion in enumerate(cause.suggestions[:SUGGESTIONS]):
        trial = known.get(suggestion.id)
        if trial is None and not suggestion.options:
            continue  # a change of the source, which is the fix above
        options = shlex.join(suggestion.options)
        said: Line = outcome(trial) if trial is not None else ((options, "dim"),)
        lines = [line(("try  ", "dim"), f"{suggestion.words}  ", *said, hang=5)]
        lines += edits_lines(trial) if trial is not None else []
        head, *more = text_rows(lines, width, indent=INDENT)
        target = ToSuggestion(number, place) if suggestion.options else None
        rows += [
            replace(head, at=target, copies=options),
            *more,
        ]
    return rows


def _unexplained(profile: Profile, row: RegionRow, width: int) -> list[Row]:
    """A region without a cause."""
    if row.standing == "noise":
        mark: Span = (" · ", "dim")
        words = "no measurable difference"
        if row.same_calls:
            words = f"both sides run the same calls: {words}, or less than {SAME_CALLS_LEAST}"
    elif row.standing == "won":
        mark = (" ✓ ", "good")
        words = (
            f"{plural(len(row.operations), 'operation')} became {plural(len(row.steps), 'step')}"
        )
    else:
        mark = (" ✗ ", "bad")
        words = "slower than eager; the trace shows no cause"
    head, *rest = wrap(words, width - INDENT - 1)
    rows = [text_row(mark, head)]
    return [*rows, *(_indented((line, "text")) for line in rest), BLANK]
