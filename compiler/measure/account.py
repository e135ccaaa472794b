"""Where the time of a call goes: lines that were measured apart from the whole, and the rest.

All values are seconds of one round each, in the order of the rounds. A line is summed up round by
round before its median is taken: medians of single steps add up to less than the median of a call,
since each is rarely disturbed, and a call often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import hypot, sqrt
from statistics import median

from compiler.measure.speed import spread
from compiler.trace.records import Timed
from compiler.trace.records.profile import Account, AccountLine

Rounds = Sequence[float]
ROUNDS = 9
"""So many rounds have 3 MAD as their noise."""
SURELY = 0.4
"""The lower half of rounds counts where it deviates less than this share of what all do …"""
LEAST = 8
"""… of at least so many."""


def timed(rounds: Rounds) -> Timed:
    """Median and max(3 MAD, 1%)."""
    middle = median(rounds)
    return Timed(
        median=middle, spread=max(3 * spread(rounds), 0.01 * abs(middle)), runs=len(rounds)
    )


def summed(parts: Iterable[Rounds], rounds: int) -> list[float]:
    """Round by round; zeros where there are no parts."""
    found = [0.0] * rounds
    for part in parts:
        for number, seconds in enumerate(part):
            found[number] += seconds
    return found


def less(whole: Rounds, *parts: Rounds) -> list[float]:
    """What the parts leave of the whole, round by round; nothing below 0."""
    return [max(0.0, one - sum(part[number] for part in parts)) for number, one in enumerate(whole)]


def difference(eager: Rounds, compiled: Rounds) -> tuple[float, float]:
    """(compiled - eager, what is noise).

    Taken in the way that is the surer one here. Round by round, it is the median of the
    differences with their MAD: a drift of the machine meets both sides of a round. By what either
    side usually takes, it is the difference of those with the MADs of both: of rounds in which
    something disturbs one side or the other there may be more than half, while each side alone is
    mostly undisturbed.

    Noise is 3 MAD of `ROUNDS` rounds; of more it is less, of fewer more, by the root of their
    number, as the error of a median is. It is 1% at least: of eager, or of compiled where eager
    does nothing.
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
    """As `timed`; where most rounds were disturbed, their lower quartile. `contended`: they were,
    as others used the processors."""
    middle, deviation = _usual(rounds, contended)
    return Timed(median=middle, spread=max(3 * deviation, 0.01 * abs(middle)), runs=len(rounds))


def _usual(rounds: Rounds, contended: bool = False) -> tuple[float, float]:
    """(median, MAD), or the same of the rounds that are not above the median.

    What others do to a run only makes it longer. Where that happens to one run in two, the median
    is anywhere between those and the undisturbed ones, and the lower half says far more: then it
    deviates far less from its own median, the lower quartile. (Of a normal distribution that
    deviation is the MAD of all, divided by 1.7.)
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
    """(eager/compiled, what is noise as a share of it), as `difference` takes them."""
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
    """A line that sums up what each part usually takes by itself, on a contended machine."""
    times = [usual(part, contended=True) for part in parts]
    time = Timed(
        median=sum(one.median for one in times),
        spread=hypot(*(one.spread for one in times)),
        runs=max((one.runs for one in times), default=0),
    )
    return AccountLine(name=name, time=time, what=what)


def noise_of_medians(first: Rounds, second: Rounds, independent: int) -> float:
    """What the difference of two medians may be off by chance: three standard errors, and more of
    few values, by which the error itself is hardly known.

    A median of n values has 1.2533 times the error of a mean, and a normal spread is 1.4826 MAD.
    `independent`: so many of the values are, where those of one moment are alike.
    """
    count = max(2, min(independent, len(first), len(second)))
    errors = 1.2533 * 1.4826 * hypot(spread(first), spread(second)) / sqrt(count)
    return three_errors(count - 1) * errors


def three_errors(freedom: int) -> float:
    """So many standard errors, where they are told by a sample, are as rare as three that are
    known: Student's t, as a series around the normal (Abramowitz and Stegun, 26.7.5).

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
    """The account of one side; lines that are 0 throughout are left out. `noise`: of what is left,
    in seconds."""
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
