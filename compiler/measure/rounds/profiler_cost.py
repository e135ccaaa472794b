"""What torch's profiler takes for each event that it writes, told by the call that it watches.

In a loop over one operation it takes a quarter of what it takes in a model, where each operation
throws out of the nearest caches what the profiler needs next; from machine to machine it differs as
much. So it is what the profiled call takes beyond the plain one, for each event: for the calls of
even rounds by those of odd ones, and the other way round. Where others use the processors that
difference can be anything; no event takes more than `MOST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from compiler.measure.rounds.laps import Lap, Laps, Side, Way
from compiler.measure.rounds.quiet import quiet_laps

MOST = 2e-6
"""Seconds: over one microsecond was seen on a virtual machine."""
_WAYS: tuple[Way, ...] = ("probed", "between")


def take_off(sides: dict[Side, Laps]) -> None:
    """Take it from the times of operations, and count what is left of it as the probe's own.

    The eager side tells it for both: it has the most events, and what both sides call is to be
    compared.
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
    """Seconds for each event, from undisturbed calls of the odd rounds, or of the even ones; of all
    rounds where there is but one kind. A profiler gives no time back."""
    apart = [[lap for lap in of_way if lap.turn % 2 == odd] for of_way in (plain, watched)]
    if not all(apart):
        apart = [list(plain), list(watched)]
    quiet = quiet_laps({"plain": apart[0], "probed": apart[1]})
    added = median(lap.running() for lap in quiet["probed"])
    added -= median(lap.running() for lap in quiet["plain"])
    return min(MOST, max(0.0, added / median(lap.events for lap in quiet["probed"])))
