"""Two versions of one thing, timed in turn: both medians, the difference, and the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler.measure.calls.runs import Prepare
from compiler.measure.rounds.noise import difference, mean_round, timed
from compiler.measure.rounds.rounds import RoundsPlan
from compiler.measure.rounds.whole_runs import seconds_in_rounds
from compiler.trace.records import Timed

PLAN = RoundsPlan(rounds=600, seconds=2.0, least=10, patience=30.0)
"""Of one pair."""


@dataclass(frozen=True)
class Paired:
    """A paired timing, in seconds."""

    before: Timed
    after: Timed
    difference: float
    """Median of after - before, round by round."""
    noise: float
    """max(3 MAD of the differences, 1% of the base): a smaller difference is not significant."""
    pairs: int


def in_turn(contenders: Sequence[tuple[Prepare, Prepare]], seconds: float = PLAN.seconds) -> Paired:
    """Time both of each pair after a warm-up, one after the other in each round. Caches are warm.
    A round's time is the mean over the pairs."""
    times = seconds_in_rounds(contenders, replace(PLAN, seconds=seconds))
    before, after = (mean_round(found) for found in zip(*times, strict=True))
    found, noise = difference(before, after)
    return Paired(timed(before), timed(after), found, noise, pairs=len(before))
