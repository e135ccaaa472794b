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
    differences with 3 of their MAD: a drift of the machine meets both sides of a round. By
    medians, it is their difference with 3 MAD of both: of rounds in which something disturbs one
    side or the other there may be more than half, while each side alone is mostly undisturbed.
    Noise is 1% at least: of eager, or of compiled where eager does nothing.
    """
    differences = [b - a for a, b in zip(eager, compiled, strict=True)]
    before, after = median(eager), median(compiled)
    found, noise = min(
        (
            (median(differences), spread(differences)),
            (after - before, hypot(spread(eager), spread(compiled))),
        ),
        key=_noise,
    )
    return found, max(3 * noise, 0.01 * (before or after))


def ratio(eager: Rounds, compiled: Rounds) -> tuple[float, float]:
    """(eager/compiled, what is noise as a share of it), as `difference` takes them."""
    ratios = [a / b for a, b in zip(eager, compiled, strict=True)]
    before, after = median(eager), median(compiled)
    found, noise = min(
        (
            (median(ratios), spread(ratios) / median(ratios)),
            (before / after, hypot(spread(eager) / before, spread(compiled) / after)),
        ),
        key=_noise,
    )
    return found, max(3 * noise, 0.01)


def _noise(found: tuple[float, float]) -> float:
    return found[1]


def line(name: str, rounds: Rounds, what: str = "") -> AccountLine:
    """A line of an account."""
    return AccountLine(name=name, time=timed(rounds), what=what)


def noise_of_medians(first: Rounds, second: Rounds, independent: int) -> float:
    """What the difference of two medians may be off by chance: three standard errors.

    A median of n values has 1.2533 times the error of a mean, and a normal spread is 1.4826 MAD.
    `independent`: so many of the values are, where those of one moment are alike.
    """
    return 3 * 1.2533 * 1.4826 * hypot(spread(first), spread(second)) / sqrt(max(1, independent))


def account(
    side: str,
    call: int,
    phase: str,
    measured: Rounds,
    lines: Sequence[AccountLine],
    noise: float = 0.0,
) -> Account:
    """The account of one side; lines that are 0 throughout are left out. `noise`: of what is left,
    in seconds."""
    kept = tuple(one for one in lines if one.time.median or one.time.spread)
    whole = timed(measured)
    return Account(
        side=side,  # type: ignore[arg-type]
        call=call,
        phase=phase,  # type: ignore[arg-type]
        measured=whole,
        lines=kept,
        remainder=whole.median - sum(one.time.median for one in kept),
        remainder_noise=noise,
    )
