"""What the times of all rounds come to, and by how much that may be off.

All values are seconds, one per round, in the order of the rounds. A deviation is a median absolute
deviation (MAD), and noise is `MADS` of them, and at least `LEAST_SHARE` of the value itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt
from statistics import median

from compiler.trace.records import Timed

Rounds = Sequence[float]
ROUNDS = 9
"""The number of rounds whose noise is 3 MAD."""
SURELY = 0.4
"""The lower half of the rounds is used if its deviation is below this share of the whole's."""
LEAST = 8
"""The minimum number of rounds for using the lower half."""
MADS = 3
LEAST_SHARE = 0.01


def spread(values: Sequence[float]) -> float:
    """Median absolute deviation."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def _noise(deviation: float, value: float) -> float:
    return max(MADS * deviation, LEAST_SHARE * abs(value))


def timed(rounds: Rounds) -> Timed:
    """Median, with a spread of max(3 MAD, 1%)."""
    middle = median(rounds)
    return Timed(median=middle, spread=_noise(spread(rounds), middle), runs=len(rounds))


def mean_round(sets: Sequence[Rounds]) -> list[float]:
    """The mean over several input sets, round by round."""
    return [sum(round_) / len(sets) for round_ in zip(*sets, strict=True)]


def paired_difference(before: Rounds, after: Rounds) -> tuple[float, float]:
    """(median of after - before, round by round; noise), both in seconds."""
    differences = [b - a for a, b in zip(before, after, strict=True)]
    return median(differences), _noise(spread(differences), median(before))


def paired_ratio(first: Rounds, second: Rounds) -> tuple[float, float]:
    """(median of first/second, round by round; noise as a share of it)."""
    ratios = [a / b for a, b in zip(first, second, strict=True)]
    found = median(ratios)
    return found, _noise(spread(ratios) / found, 1.0)


def difference(eager: Rounds, compiled: Rounds) -> tuple[float, float]:
    """(compiled - eager, noise), both in seconds.

    Two estimates are made, and the less noisy one is used. The first is the median of the
    round-by-round differences, with their MAD: a drift of the machine affects both sides of a round
    alike. The second is the difference of each side's usual time, with the MADs of both: more than
    half of the rounds may have a disturbance on either side, while each side alone is mostly
    undisturbed.

    The noise is 3 MAD for `ROUNDS` rounds, and scales with the inverse square root of their number,
    as the error of a median does. It is at least 1% of eager, or of compiled if eager does nothing.
    """
    differences = [b - a for a, b in zip(eager, compiled, strict=True)]
    (before, below), (after, above) = _usual(eager), _usual(compiled)
    found, noise = min(
        (
            (median(differences), spread(differences)),
            (after - before, hypot(below, above)),
        ),
        key=_second,
    )
    lowest = _lowest(compiled) - _lowest(eager)
    return found, max(
        3 * noise * sqrt(ROUNDS / len(differences)),
        0.01 * (before or after),
        2 * abs(found - lowest),
    )


def _lowest(rounds: Rounds) -> float:
    """The lower decile."""
    return sorted(rounds)[len(rounds) // 10]


def usual(rounds: Rounds, contended: bool = False) -> Timed:
    """As `timed`, but the lower quartile if most rounds were disturbed. `contended` states that
    they were, because other programs used the processors."""
    middle, deviation = _usual(rounds, contended)
    return Timed(median=middle, spread=_noise(deviation, middle), runs=len(rounds))


def _usual(rounds: Rounds, contended: bool = False) -> tuple[float, float]:
    """(median, MAD) of all rounds, or of the lower half.

    Interference only makes a run longer. If it affects every second run, the median may be anywhere
    between the disturbed and undisturbed runs, and the lower half is far more informative: its
    deviation from its own median, the lower quartile, is then far smaller. (For a normal
    distribution, that deviation is the MAD of all divided by 1.7.)
    """
    middle, deviation = median(rounds), spread(rounds)
    if len(rounds) < LEAST:
        return middle, deviation
    half = sorted(rounds)[: (len(rounds) + 1) // 2]
    lower = 1.7 * spread(half)
    if contended or lower < SURELY * deviation:
        return median(half), lower
    return middle, deviation


def ratio(eager: Rounds, compiled: Rounds, contended: bool = False) -> tuple[float, float]:
    """(eager/compiled, noise as a share of it), estimated as in `difference`."""
    ratios = [a / b for a, b in zip(eager, compiled, strict=True)]
    (before, below), (after, above) = _usual(eager, contended), _usual(compiled, contended)
    found, noise = min(
        (
            (median(ratios), spread(ratios) / median(ratios)),
            (before / after, hypot(below / before, above / after)),
        ),
        key=_second,
    )
    return found, _noise(noise, 1.0)


def _second(found: tuple[float, float]) -> float:
    return found[1]


def noise_of_medians(first: Rounds, second: Rounds, independent: int) -> float:
    """By how much the difference of two medians may be off by chance: three standard errors, and
    more for few values, which determine the error itself poorly.

    The standard error of a median of n values is 1.2533 times that of a mean, and a normal standard
    deviation is 1.4826 MAD. `independent`: the number of independent values, as simultaneous ones
    are correlated.
    """
    count = max(2, min(independent, len(first), len(second)))
    errors = 1.2533 * 1.4826 * hypot(spread(first), spread(second)) / sqrt(count)
    return three_errors(count - 1) * errors


def three_errors(freedom: int) -> float:
    """The number of sample-estimated standard errors that is as rare as three known ones: Student's
    t, as a series around the normal (Abramowitz and Stegun, 26.7.5).

    >>> round(three_errors(4), 1), round(three_errors(100), 2)
    (6.4, 3.08)
    """
    z, n = 3.0, freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3
