"""One region of a profile, side by side: the eager operations, and what was compiled of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.trace import refs
from compiler.trace.precision import worst_output
from compiler.trace.records import CompiledStep, EagerOperation, KernelPrecision
from viewers.kit.cells import cut, pad, pad_left
from viewers.kit.figures import TimeUnit, rate_text, unit_of
from viewers.kit.spans import Line, Role, Span, text
from viewers.labels import short_label
from viewers.panes import profiled
from viewers.panes.kernel_names import kernel_name
from viewers.panes.names import short_target
from viewers.panes.rows import BLANK, Content, Row, empty
from viewers.panes.targets import ToKernel
from viewers.panes.view import View
from viewers.plain import plain
from viewers.summary.profile import Profile, RegionRow, Work, work_of
from viewers.words import bytes_text, error_text, percent, plural

TIME, LAUNCHES, BYTES, RATE, SHARE = 9, 6, 9, 12, 6


@dataclass(frozen=True)
class _Columns:
    """What there is room for: the name never goes, then the time, the share, the bytes …"""

    name: int
    launches: bool
    bytes: bool
    rate: bool

    @classmethod
    def of(cls, width: int) -> _Columns:
        left = width - 2 - TIME - SHARE
        parts = []
        for cells, least in ((BYTES, 16), (RATE, 16), (LAUNCHES, 24)):
            fits = left - cells >= least
            left -= cells if fits else 0
            parts.append(fits)
        moved, rate, launches = parts
        return cls(max(8, left), launches, moved, rate)


def eager(view: View, width: int) -> Content:
    """The operations that eager runs, equal ones of repeated layers once."""
    profile, row = view.facts.profile, profiled.chosen(view)
    if profile is None or row is None:
        return Content("eager", rows=empty(width, *profiled.not_measured(view)))
    if not row.operations:
        rows = empty(width, "nothing: eager has no such operation", "it came with the capture")
        return Content("eager", plain(row.label), rows=rows)
    columns, unit = _Columns.of(width), unit_of(profile.head)
    rows = [_head(columns, "operation", unit)]
    for group in _same(row.operations):
        rows.append(_operation(view, profile, group, columns, unit))
    rows += _sum(row.eager_work, columns, unit)
    right: Line = ((plural(len(row.operations), "operation"), "dim"),)
    return Content("eager", plain(row.label), right, rows, head=1)


def compiled(view: View, width: int) -> Content:
    """The kernels and calls that stand for them; `⏎` leads to a kernel's source."""
    profile, row = view.facts.profile, profiled.chosen(view)
    if profile is None or row is None:
        return Content("compiled", rows=empty(width, *profiled.not_measured(view)))
    if not row.steps:
        rows = empty(
            width, "nothing: compiling removed it", "its results need no code of their own"
        )
        return Content("compiled", plain(row.label), rows=rows)
    columns, unit = _Columns.of(width), unit_of(profile.head)
    known = {one.kernel: one for one in profile.precision}
    rows = [_head(columns, "kernel", unit)]
    for group in _repeated(profile, row):
        rows.append(_step(view, profile, group, columns, unit))
        rows += _precision(known.get(group[0].kernel), width)
    rows += _sum(row.compiled_work, columns, unit)
    right: Line = ((plural(len(row.steps), "step"), "dim"),)
    return Content("compiled", plain(row.label), right, rows, head=1)


def _same(operations: Sequence[EagerOperation]) -> list[list[EagerOperation]]:
    """Equal operations of a line together, in order."""
    found: dict[object, list[EagerOperation]] = {}
    for one in operations:
        found.setdefault((one.operation, one.location), []).append(one)
    return list(found.values())


def _repeated(profile: Profile, row: RegionRow) -> list[list[CompiledStep]]:
    """The steps of one region; those of repeated layers with their likes."""
    found: dict[object, list[CompiledStep]] = {}
    for region in row.regions:
        for place, step in enumerate(profile.index.steps_in(region)):
            found.setdefault((place, re.sub(r"\d+", "*", step.name)), []).append(step)
    return list(found.values())


def _head(columns: _Columns, what: str, unit: TimeUnit) -> Row:
    spans = [" " + pad(what, columns.name), pad_left(unit.name, TIME)]
    if columns.launches:
        spans.append(pad_left("runs", LAUNCHES))
    if columns.bytes:
        spans.append(pad_left("moved", BYTES))
    if columns.rate:
        spans.append(pad_left("reached", RATE))
    spans.append(pad_left("roof", SHARE))
    return Row(body=tuple((one, "dim") for one in spans))


def _figures(work: Work, columns: _Columns, unit: TimeUnit, role: Role) -> list[Span]:
    spans: list[Span] = [(pad_left(unit.text(work.seconds), TIME), role)]
    if columns.launches:
        spans.append((pad_left(str(work.launches), LAUNCHES), "dim"))
    if columns.bytes:
        size = "–" if work.bytes is None else bytes_text(work.bytes)
        spans.append((pad_left(size, BYTES), "dim"))
    if columns.rate:
        reached = rate_text(work.rate, "FLOP/s") if work.limit == "rate" else ""
        words = reached or rate_text(work.bandwidth, "B/s")
        spans.append((pad_left(words, RATE), "dim"))
    share = "–" if work.share is None else percent(work.share)
    spans.append((pad_left(share, SHARE), role if work.share is not None else "faint"))
    return spans


def _operation(
    view: View, profile: Profile, group: list[EagerOperation], columns: _Columns, unit: TimeUnit
) -> Row:
    first = group[0]
    place = first.location
    target = short_target(first.operation)
    name = plain(short_label(target) or target) + (f" ×{len(group)}" if len(group) > 1 else "")
    line = f"{place.line:>4} " if place is not None else "     "
    work = work_of(profile.index, group)
    source = refs.source(place.file, place.line) if place is not None else ""
    said = f"{first.operation}({first.arguments})" if first.arguments else first.operation
    return Row(
        body=(
            (" ", "text"),
            (line, "faint"),
            (pad(cut(name, columns.name - 6), columns.name - 5), "text"),
            *_figures(work, columns, unit, "text"),
        ),
        ref=source,
        key=f"operation:{first.id}",
        copies=said,
    )


def _step(
    view: View, profile: Profile, group: list[CompiledStep], columns: _Columns, unit: TimeUnit
) -> Row:
    first = group[0]
    kernel = profile.index.kernel_of(first)
    words = kernel_name(view.facts, kernel) if kernel is not None else short_target(first.name)
    name = plain(words) + (f" ×{len(group)}" if len(group) > 1 else "")
    id = f"{kernel.id:>4} " if kernel is not None else "     "
    quiet: Role = "dim" if first.kind != "kernel" else "text"
    return Row(
        body=(
            (" ", "text"),
            (plain(id), "faint"),
            (pad(cut(name, columns.name - 6), columns.name - 5), quiet),
            *_figures(work_of(profile.index, group), columns, unit, "text"),
        ),
        ref=refs.kernel(kernel.id) if kernel is not None else "",
        key=f"step:{first.id}" if kernel is None else "",
        at=ToKernel(kernel.id) if kernel is not None else None,
        opens=ToKernel(kernel.id) if kernel is not None else None,
        copies=first.name,
    )


def _precision(found: KernelPrecision | None, width: int) -> list[Row]:
    """How far a kernel's results are from float64, where that was measured."""
    if found is None or (found.within is not False and not found.outputs):
        return []
    worst = worst_output(found)
    if worst is None:
        return []
    said = f"error {error_text(worst.error)}, eager {error_text(worst.eager_error)}"
    if found.within is False:
        said += f", bound {error_text(worst.bound)}: wrong"
    mark: Span = ("✗ ", "bad") if found.within is False else ("✓ ", "good")
    role: Role = "bad" if found.within is False else "dim"
    return [Row(body=(("      ", "text"), mark, text(cut(said, width - 9), role)))]


def _sum(work: Work, columns: _Columns, unit: TimeUnit) -> list[Row]:
    rows = [
        Row(body=(("─" * (columns.name + TIME + SHARE), "faint"),)),
        Row(
            body=(
                (" " + pad("sum", columns.name), "strong"),
                *_figures(work, columns, unit, "strong"),
            )
        ),
    ]
    if work.host is not None:
        rows.append(Row(body=((f" {unit.text(work.host)} {unit.name} of the host beside", "dim"),)))
    return [*rows, BLANK]
