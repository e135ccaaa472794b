"""The rounds that other programs disturbed least."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.measure.rounds.laps import Laps, Side

LEAST = 7
"""The minimum number of rounds that are kept."""
FEW = 3
"""This many undisturbed runs of one kind are better than any number of disturbed ones."""
ENOUGH = 12
"""From this many undisturbed rounds on, only these are kept; else the less disturbed half."""


def quiet_rounds(sides: dict[Side, Laps]) -> dict[Side, Laps]:
    """The least disturbed rounds, for what is compared round by round: the undisturbed ones if
    there are `ENOUGH`, else the less disturbed half. Plain runs are selected together, and probed
    runs together."""
    found: dict[Side, Laps] = {side: {} for side in sides}
    for together in (("plain",), ("probed", "between")):
        chosen = {
            (side, way): of_side[way]
            for side, of_side in sides.items()
            for way in of_side
            if way in together
        }
        rounds = list(zip(*chosen.values(), strict=True))
        disturbed = [sum(lap.disturbed for lap in one) for one in rounds]
        if not disturbed:
            continue
        least = 1 if disturbed.count(0) >= ENOUGH else max(LEAST, len(disturbed) // 2)
        kept = _lowest(disturbed, least)
        for (side, way), laps in chosen.items():
            found[side][way] = [laps[number] for number in kept]
    return found


def quiet_laps(laps: Laps) -> Laps:
    """The least disturbed runs of each way, for what is summed: at least `FEW`."""
    return {
        way: [found[number] for number in _lowest([lap.disturbed for lap in found], FEW)]
        for way, found in laps.items()
    }


def _lowest(disturbed: Sequence[int], least: int) -> list[int]:
    """The places of the `least` lowest numbers, and of all that are equally low.

    The system reports how often it took a processor from a thread for another program, and how many
    new pages of memory it supplied because the allocator happened to have none to reuse. Nothing is
    selected by its time.
    """
    limit = sorted(disturbed)[min(least, len(disturbed)) - 1]
    return [number for number, count in enumerate(disturbed) if count <= limit]
