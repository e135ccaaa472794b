"""Two versions of one thing, timed in turn: both medians, the difference, and the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from compiler.measure.account.lines import timed
from compiler.measure.rounds.speed import Side, in_rounds, spread
from compiler.trace.records import Timed

SECONDS = 2.0
"""Time budget of one pair."""
PAIRS = 600


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


def in_turn(before: Side, after: Side, seconds: float = SECONDS, pairs: int = PAIRS) -> Paired:
    """Time both after a warm-up, one after the other in each round. Caches are warm."""
    return all_in_turn([(before, after)], seconds, pairs)


def all_in_turn(
    contenders: Sequence[tuple[Side, Side]], seconds: float = SECONDS, pairs: int = PAIRS
) -> Paired:
    """As `in_turn`, for several pairs together: a round's time is the mean over them."""
    times = in_rounds(contenders, seconds, pairs)
    one, other = (
        [sum(round_) / len(times) for round_ in zip(*sides, strict=True)]
        for sides in zip(*times, strict=True)
    )
    differences = [b - a for a, b in zip(one, other, strict=True)]
    return Paired(
        before=timed(one),
        after=timed(other),
        difference=median(differences),
        noise=max(3 * spread(differences), 0.01 * median(one)),
        pairs=len(differences),
    )
