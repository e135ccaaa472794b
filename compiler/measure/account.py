"""Where the time of a call goes: lines that were measured apart from the whole, and the rest.

All values are seconds of one round each, in the order of the rounds. A line is summed up round by
round before its median is taken: medians of single steps add up to less than the median of a call,
since each is rarely disturbed, and a call often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """(median of compiled - eager, what is noise), round by round.

    Noise is max(3 MAD of the differences, 1% of eager, or of compiled where eager does nothing):
    a drift of the machine meets both sides of a round and is no part of it.
    """
    differences = [b - a for a, b in zip(eager, compiled, strict=True)]
    base = median(eager) or median(compiled)
    return median(differences), max(3 * spread(differences), 0.01 * base)


def line(name: str, rounds: Rounds, what: str = "") -> AccountLine:
    """A line of an account."""
    return AccountLine(name=name, time=timed(rounds), what=what)


def account(
    side: str, call: int, phase: str, measured: Rounds, lines: Sequence[AccountLine]
) -> Account:
    """The account of one side; lines that are 0 throughout are left out."""
    kept = tuple(one for one in lines if one.time.median or one.time.spread)
    whole = timed(measured)
    return Account(
        side=side,  # type: ignore[arg-type]
        call=call,
        phase=phase,  # type: ignore[arg-type]
        measured=whole,
        lines=kept,
        remainder=whole.median - sum(one.time.median for one in kept),
    )
