"""The cost of torch's profiler per recorded event, derived from the profiled call itself.

An event costs four times as much in a model as in a loop over one operation, because each operation
evicts from the nearest caches what the profiler needs next. The cost varies as much between
machines. So it is derived from the extra time of the profiled call over the plain one, per event:
calls of even rounds use the cost from odd rounds, and vice versa. If other programs use the
processors, that difference can be anything; the cost is at most `MOST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tcw.compiler.measure.rounds.laps import Lap, LapKind, Laps, Side
from tcw.compiler.measure.rounds.quiet import quiet_laps

MOST = 2e-6
"""Seconds: more than one microsecond was seen on a virtual machine."""
_WAYS: tuple[LapKind, ...] = ("probed", "between")


def take_off(sides: dict[Side, Laps]) -> None:
    """Subtract the cost from the times of operations, and count the rest of it as the probe's own.

    The eager side determines it for both sides: it has the most events, and the sides' common
    operations are to be compared.
    """
    eager = [lap for lap in sides["eager"].get("probed", ()) if lap.events]
    for laps in sides.values():
        for way in _WAYS:
            watched = [lap for lap in laps.get(way, ()) if lap.events]
            if not watched:
                continue
            plain, told = (sides["eager"]["plain"], eager) if eager else (laps["plain"], watched)
            costs = [event_cost(plain, told, other) for other in (1, 0)]
            for lap in watched:
                each = costs[lap.turn % 2]
                lap.eager = [run.without(each * 1e9) for run in lap.eager]
                lap.inside = [call.without(each * 1e9) for call in lap.inside]
                lap.took += each * lap.events  # in operations, and around them


def event_cost(plain: Sequence[Lap], watched: Sequence[Lap], odd: int) -> float:
    """Seconds per event, from undisturbed calls of the odd rounds, or of the even ones; of all
    rounds if there are only odd or only even ones. Never negative."""
    apart = [[lap for lap in of_way if lap.turn % 2 == odd] for of_way in (plain, watched)]
    if not all(apart):
        apart = [list(plain), list(watched)]
    quiet = quiet_laps({"plain": apart[0], "probed": apart[1]})
    added = median(lap.running() for lap in quiet["probed"])
    added -= median(lap.running() for lap in quiet["plain"])
    return min(MOST, max(0.0, added / median(lap.events for lap in quiet["probed"])))
