"""Which differences come before which, as far as the measurement can tell them apart.

One stands before another where it is surely larger: by more than the noise of both allows, and by a
good part of it, as the same model measured again on the same machine differs by so much. Where
neither is, what the work of both sides makes one expect decides (`expected.py`), which no
measurement changes. So a measurement that is near to a limit moves only those that it puts against
what is expected, and two runs agree about the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, hypot

from compiler.trace.records import CallProfile

CLOSE, CLOSE_CONTENDED = 0.2, 0.67
"""Share of the larger difference by which two have to differ: on a machine that others use, the
same difference is half or twice as large in another process, so one is three times another …"""
APART = 0.6
"""… and share of the noise of both: 3 of the 5 standard errors that noise is (9 MAD/√rounds)."""

SMALL = 0.01
"""Share of a call below which a difference is small."""


@dataclass(frozen=True)
class Difference:
    """compiled - eager; all in seconds."""

    seconds: float
    noise: float
    expected: float = 0.0
    """What the work of both sides makes one expect."""


@dataclass(frozen=True)
class Standing:
    """Where a difference stands among others."""

    position: int
    """From 1."""
    rank: int
    """The position of the first of those that stand together, where none is surely larger than
    another."""


def small_below(head: CallProfile) -> float:
    """Seconds below which a difference is small in this call."""
    return SMALL * max(head.eager.median, head.compiled.median)


def surely_larger(one: Difference, other: Difference, *, contended: bool) -> bool:
    """Of |seconds|; `contended`: as the profile of the call says (`CallProfile.contended`)."""
    most, least = abs(one.seconds), CLOSE_CONTENDED if contended else CLOSE
    return most - abs(other.seconds) > max(least * most, APART * hypot(one.noise, other.noise))


def standings(found: Sequence[Difference], *, contended: bool) -> list[Standing]:
    """One for each, in the order given: of those that no other one left is surely larger than, the
    one that is expected to be the largest, in the same direction, is next (a topological order:
    Kahn, 1962); equals keep their order."""

    def surely(one: int, other: int) -> bool:
        return surely_larger(found[one], found[other], contended=contended)

    every = range(len(found))
    above = [sum(surely(other, one) for other in every) for one in every]
    left = sorted(every, key=lambda at: -copysign(1, found[at].seconds) * found[at].expected)
    made: dict[int, Standing] = {}
    equals: list[int] = []
    while left:
        chosen = next(at for at in left if not above[at])
        left.remove(chosen)
        for at in left:
            above[at] -= surely(chosen, at)
        if any(surely(one, chosen) for one in equals):
            equals = []
        equals.append(chosen)
        position = len(made) + 1
        made[chosen] = Standing(position, rank=position - len(equals) + 1)
    return [made[at] for at in every]
