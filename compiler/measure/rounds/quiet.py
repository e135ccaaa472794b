"""The rounds that other programs disturbed least."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.measure.rounds.laps import Laps, Side

LEAST = 7
"""The minimum number of rounds that are kept."""
FEW = 3
"""So many undisturbed runs of one kind say more than any number of others …"""
ENOUGH = 12
"""… and so many undisturbed rounds; of fewer, the less disturbed half is added."""


def quiet_rounds(sides: dict[Side, Laps]) -> dict[Side, Laps]:
    """Without the rounds that were disturbed most, for what is compared round by round: those in
    which nothing was, where there are `ENOUGH`, else the half that was disturbed least. Plain runs
    are compared with plain ones alone, and what probes read with what probes read."""
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
    """The least disturbed runs of each way, for what is summed up: a `FEW` at least."""
    return {
        way: [found[number] for number in _lowest([lap.disturbed for lap in found], FEW)]
        for way, found in laps.items()
    }


def _lowest(disturbed: Sequence[int], least: int) -> list[int]:
    """Places of so many of the lowest numbers, and of all that are as low as they.

    The system takes a processor from a thread to give it to another program, and gives pages of
    memory where the allocator, by what it did before, has none to use again; it says how often.
    What is kept is not chosen by its time.
    """
    limit = sorted(disturbed)[min(least, len(disturbed)) - 1]
    return [number for number, count in enumerate(disturbed) if count <= limit]
