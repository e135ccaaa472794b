"""Values and noise from the times of all rounds.

All values are seconds, one per round, in the order of the rounds. The usual value is their median,
and the deviation its median absolute deviation (MAD).

There is one rule of noise: 3 MAD for nine rounds. The error of a median falls with the square root
of the number of rounds, so n rounds have 9 MAD/√n, about five standard errors. That holds for
independent rounds. If other programs use the processors, or may do so, they slow down many rounds
in a row, and more rounds give no more certainty: the noise is then never less than 3 MAD. It is
also at least 1% of the value. `docs/notes/statistics.md` has an example worked out by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt
from statistics import median

from tcw.compiler.trace.records import Timed

Rounds = Sequence[float]
ROUNDS = 9
"""The number of rounds whose noise is 3 MAD."""
MADS = 3
LEAST_SHARE = 0.01


def spread(values: Sequence[float]) -> float:
    """Median absolute deviation."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def noise_of(deviation: float, rounds: int, value: float, *, independent: bool) -> float:
    """The noise of a median of `rounds` values that have this MAD; at least 1% of `value`.
    `independent`: no other programs used the processors."""
    root = sqrt(ROUNDS / rounds)
    return max(
        MADS * deviation * (root if independent else max(1.0, root)), LEAST_SHARE * abs(value)
    )


def timed(rounds: Rounds) -> Timed:
    """Median, with a spread of max(3 MAD, 1%): how far single rounds are from it."""
    middle = median(rounds)
    return Timed(
        median=middle,
        spread=max(MADS * spread(rounds), LEAST_SHARE * abs(middle)),
        runs=len(rounds),
    )


def mean_round(sets: Sequence[Rounds]) -> list[float]:
    """The mean over several input sets, round by round."""
    return [sum(round_) / len(sets) for round_ in zip(*sets, strict=True)]


def difference(before: Rounds, after: Rounds, *, independent: bool = False) -> tuple[float, float]:
    """(after - before; its noise), both in seconds. The noise is at least 1% of `before`, or of
    `after` if that is 0.

    The less noisy of two estimates. One is the median of the round-by-round differences, as a drift
    of the machine affects both sides of a round alike. The other is the difference of the medians,
    with the MADs of both, as a disturbance of one side in every third round disturbs most pairs.
    """
    pairs = [b - a for a, b in zip(before, after, strict=True)]
    first, second = median(before), median(after)
    found, deviation = _less_noisy(
        (median(pairs), spread(pairs)), (second - first, hypot(spread(before), spread(after)))
    )
    return found, noise_of(deviation, len(pairs), first or second, independent=independent)


def ratio(first: Rounds, second: Rounds, *, independent: bool = False) -> tuple[float, float]:
    """(first/second; its noise as a share of it), estimated as in `difference`."""
    pairs = [a / b for a, b in zip(first, second, strict=True)]
    above, below = median(first), median(second)
    found, deviation = _less_noisy(
        (median(pairs), spread(pairs) / median(pairs)),
        (above / below, hypot(spread(first) / above, spread(second) / below)),
    )
    return found, noise_of(deviation, len(pairs), 1.0, independent=independent)


def _less_noisy(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The (value, deviation) with the smaller deviation."""
    return one if one[1] <= other[1] else other


def noise_of_medians(first: Rounds, second: Rounds, rounds: int) -> float:
    """The noise of the difference of two medians, in seconds. `rounds`: the number of independent
    rounds that the values come from; the values of one round share its disturbances."""
    return hypot(
        *(
            noise_of(spread(values), min(rounds, len(values)), 0.0, independent=True)
            for values in (first, second)
        )
    )
