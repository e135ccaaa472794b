"""The hottest kernels and calls compared with the machine's ceilings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from compiler.trace.records import Bandwidth, Ceilings, CompiledStep
from viewers.kit.figures import TimeUnit, rate_text, share_text
from viewers.kit.lines import BLANK, Line, line
from viewers.kit.table import Cell, heading, table
from viewers.labels import kernel_label
from viewers.places import FileNames
from viewers.plain import plain
from viewers.summary.profile import Profile, Work, work_of
from viewers.summary.profile.causes.words import bare
from viewers.summary.profile.where import where
from viewers.words import NOT_MEASURED, bytes_text, numbers_text, plural

_POINTS = 5
"""How many working sets have their bandwidth shown."""


def kernels_lines(
    profile: Profile, names: FileNames, width: int, top: int | None, unit: TimeUnit
) -> list[Line]:
    """Kernels and calls of the compiled side, slowest first, repeated layers merged."""
    groups: dict[tuple[str, str], list[CompiledStep]] = defaultdict(list)
    for step in profile.index.steps.values():
        if step.time is not None:
            groups[_stem(profile, step)].append(step)
    works = [(key, steps, work_of(profile.index, steps)) for key, steps in groups.items()]
    works.sort(key=lambda one: -(one[2].seconds or 0.0))
    shown = works[: top or 8]
    if not shown:
        return []
    rows: list[list[Cell]] = [
        [
            (word, "dim")
            for word in ("kernel", "line", unit.name, "launches", "bytes", "", "", "roof")
        ]
    ]
    for (name, place), steps, work in shown:
        rows.append(
            [
                name if len(steps) == 1 else f"{name} ×{len(steps)}",
                (place, "dim"),
                unit.text(work.seconds),
                f"{work.launches:,}",
                "–" if work.bytes is None else bytes_text(work.bytes),
                (rate_text(work.bandwidth, "B/s"), "dim"),
                (rate_text(work.rate, "FLOP/s"), "dim"),
                _roof(work),
            ]
        )
    more = len(works) - len(shown)
    count = plural(len(profile.index.steps), "kernel or call", "kernels and calls")
    right = f"{count}, slowest first" + (f"; {more} more" if more else "")
    return [BLANK, heading("kernels", right), *table(rows, "ferrrrrr", width, 2)]


def _roof(work: Work) -> Cell:
    return ("–", "dim") if work.share is None else share_text(work.share)


def _stem(profile: Profile, step: CompiledStep) -> tuple[str, str]:
    """What kernels of repeated layers have in common: words and lines."""
    kernel = profile.index.kernel_of(step)
    places = kernel.locations if kernel else ()
    if kernel is None:
        region = profile.region_of(step.id)
        places = region.locations if region else ()
    at = numbers_text(one.line for one in places if one.file == places[0].file)
    row = None if at else profile.row_of_thing(step.id)
    at = at or (plain(where(row)) if row is not None else "")
    if kernel is None or kernel.language == "aten":
        return (bare(step.name), at)
    return (re.sub(r"_\d+$", "", kernel_label(kernel)), at)


def _some(curve: Sequence[Bandwidth]) -> list[Bandwidth]:
    """A few of many working sets, from the first to the last."""
    last = len(curve) - 1
    places = {round(last * at / (_POINTS - 1)) for at in range(_POINTS)}
    return [one for at, one in enumerate(curve) if at in places]


def ceilings_lines(ceilings: Ceilings | None) -> list[Line]:
    if ceilings is None:
        return [BLANK, line(("ceilings  ", "accent"), (NOT_MEASURED, "dim"))]
    threads = f", {plural(ceilings.threads, 'thread')}" if ceilings.kind == "cpu" else ""
    kept = ", kept from an earlier run" if ceilings.kept else ""
    lines = [BLANK, heading("ceilings", f"{ceilings.device}{threads}{kept}")]
    steps = [
        f"{rate_text(one.per_second, 'B/s')} at {bytes_text(one.bytes)}"
        for one in _some(ceilings.bandwidth)
    ]
    if steps:
        lines.append(line(("  copies    ", "dim"), " · ".join(steps), hang=12))
    rates = [f"{dtype} {rate_text(rate, 'FLOP/s')}" for dtype, rate in ceilings.rates.items()]
    if rates:
        lines.append(line(("  products  ", "dim"), " · ".join(rates), hang=12))
    if ceilings.note:
        lines.append(line((f"  {ceilings.note}", "dim"), hang=2))
    return lines
