"""What kernels and operations reach, and the ceilings of the machine that this is compared with."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import Bandwidth, Ceilings
from tcw.viewers.kit.figures import TimeUnit, rate_text, share_text
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, heading
from tcw.viewers.summary.profile.work import SideWork
from tcw.viewers.words import NOT_MEASURED, bytes_text, plural

WORK_ALIGN = "rrrrrr"
WORK_DROP = (4, 1, 3, 2)
"""Which columns of `work_cells` a narrow table drops first."""
_POINTS = 5
"""How many working sets have their bandwidth shown."""


def work_heads(unit: TimeUnit) -> list[Cell]:
    return [(word, "dim") for word in (unit.name, "launches", "bytes", "", "", "roof")]


def work_cells(work: SideWork, unit: TimeUnit, role: Role = "text") -> list[Cell]:
    """Time, launches, bytes, bytes and FLOPs a second, share of the roofline."""
    return [
        (unit.text(work.seconds), role),
        (f"{work.launches:,}", role),
        ("–" if work.bytes is None else bytes_text(work.bytes), role),
        (rate_text(work.bandwidth, "B/s"), "dim"),
        (rate_text(work.rate, "FLOP/s"), "dim"),
        (share_text(work.share), role if work.share is not None else "dim"),
    ]


def _some(curve: Sequence[Bandwidth]) -> list[Bandwidth]:
    """A few of many working sets, from the first to the last."""
    last = len(curve) - 1
    places = {round(last * at / (_POINTS - 1)) for at in range(_POINTS)}
    return [one for at, one in enumerate(curve) if at in places]


def ceilings_lines(ceilings: Ceilings | None) -> list[TextLine]:
    """What shares of the roofline are shares of."""
    if ceilings is None:
        return [heading("ceilings", NOT_MEASURED)]
    threads = f", {plural(ceilings.threads, 'thread')}" if ceilings.kind == "cpu" else ""
    kept = ", kept from an earlier run" if ceilings.kept else ""
    lines = [heading("ceilings", f"{ceilings.device}{threads}{kept}")]
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
