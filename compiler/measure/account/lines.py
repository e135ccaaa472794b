"""Where the time of a call goes: separately measured lines, and the remainder.

All values are seconds, one per round, in the order of the rounds. A line is summed round by round
before its median is taken. The medians of single steps would add up to less than the median of a
call, because each step is rarely disturbed and a call often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import hypot, sqrt
from statistics import median

from compiler.measure.rounds.speed import spread
from compiler.trace.records import Timed
from compiler.trace.records.profile import Account, AccountLine

Rounds = Sequence[float]
ROUNDS = 9
"""The number of rounds whose noise is 3 MAD."""
SURELY = 0.4
"""The lower half of the rounds is used if its deviation is below this share of the whole's."""
LEAST = 8
"""The minimum number of rounds for using the lower half."""


def timed(rounds: Rounds) -> Timed:
    """Median, with a spread of max(3 MAD, 1%)."""
    middle = median(rounds)
    return Timed(
        median=middle, spread=max(3 * spread(rounds), 0.01 * abs(middle)), runs=len(rounds)
    )


def summed(parts: Iterable[Rounds], rounds: int) -> list[float]:
    """The round-by-round sum of the parts; zeros if there are none."""
    found = [0.0] * rounds
    for part in parts:
        for number, seconds in enumerate(part):
            found[number] += seconds
    return found


def less(whole: Rounds, *parts: Rounds) -> list[float]:
    """The whole minus the parts, round by round, clamped at 0."""
    return [max(0.0, one - sum(part[number] for part in parts)) for number, one in enumerate(whole)]


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
        key=_noise,
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
    return Timed(median=middle, spread=max(3 * deviation, 0.01 * abs(middle)), runs=len(rounds))


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
        key=_noise,
    )
    return found, max(3 * noise, 0.01)


def _noise(found: tuple[float, float]) -> float:
    return found[1]


def line(name: str, rounds: Rounds, what: str = "") -> AccountLine:
    """A line of an account."""
    return AccountLine(name=name, time=usual(rounds), what=what)


def line_of_parts(name: str, parts: Sequence[Rounds], what: str = "") -> AccountLine:
    """A line that sums the usual time of each part, for a contended machine."""
    times = [usual(part, contended=True) for part in parts]
    time = Timed(
        median=sum(one.median for one in times),
        spread=hypot(*(one.spread for one in times)),
        runs=max((one.runs for one in times), default=0),
    )
    return AccountLine(name=name, time=time, what=what)


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


def account(
    side: str,
    call: int,
    phase: str,
    measured: Rounds,
    lines: Sequence[AccountLine],
    noise: float = 0.0,
    contended: bool = False,
) -> Account:
    """The account of one side, without lines that are always 0. `noise`: of the remainder, in
    seconds."""
    kept = tuple(one for one in lines if one.time.median or one.time.spread)
    whole = usual(measured, contended)
    return Account(
        side=side,  # type: ignore[arg-type]
        call=call,
        phase=phase,  # type: ignore[arg-type]
        measured=whole,
        lines=kept,
        remainder=whole.median - sum(one.time.median for one in kept),
        remainder_noise=noise,
    )
