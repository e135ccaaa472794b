"""Which differences come before which, as far as the measurement can tell them apart.

One stands before another where it is surely larger: by more than the noise of both allows, and by a
good part of it, as the same model measured again on the same machine differs by so much. Where
neither is, what the work of both sides makes one expect decides (`expected.py`), which no
measurement changes. So a measurement that is near to a limit moves only those that it puts against
what is expected, and two runs agree about the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
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
    most, least = abs(one.seconds), abs(other.seconds)
    if most <= _limit(least, contended):
        return False
    return most - least > APART * hypot(one.noise, other.noise)


def _limit(seconds: float, contended: bool) -> float:
    """What is surely larger is more than this."""
    return seconds / (1 - (CLOSE_CONTENDED if contended else CLOSE))


def standings(found: Sequence[Difference], *, contended: bool) -> list[Standing]:
    """One for each, in the order given: of those that no other one left is surely larger than, the
    one that is expected to be the largest, in the same direction, is next (a topological order:
    Kahn, 1962); equals keep their order.

    Each that has to wait does so for one that is surely larger, and looks for the next when that
    has its place: most pairs are never compared.
    """

    def surely(one: int, other: int) -> bool:
        return surely_larger(found[one], found[other], contended=contended)

    sizes = [abs(one.seconds) for one in found]
    limits = [_limit(size, contended) for size in sizes]
    ascending = sorted(range(len(found)), key=sizes.__getitem__)
    ordered = sorted(sizes)
    looked = [bisect_right(ordered, limit) for limit in limits]
    """How far each has looked for what is surely larger."""
    made: dict[int, Standing] = {}
    waiting: dict[int, list[tuple[float, int]]] = {}
    ready: list[tuple[float, int]] = []

    def wait_or_go(one: tuple[float, int]) -> None:
        for place in range(looked[one[1]], len(ascending)):
            other = ascending[place]
            if other not in made and surely(other, one[1]):
                looked[one[1]] = place + 1
                waiting.setdefault(other, []).append(one)
                return
        heappush(ready, one)

    for at, one in enumerate(found):
        wait_or_go((-copysign(1, one.seconds) * one.expected, at))
    equals: list[int] = []
    largest = 0.0
    while ready:
        _, chosen = heappop(ready)
        if largest > limits[chosen] and any(surely(one, chosen) for one in equals):
            equals, largest = [], 0.0
        equals.append(chosen)
        largest = max(largest, sizes[chosen])
        position = len(made) + 1
        made[chosen] = Standing(position, rank=position - len(equals) + 1)
        for waiter in waiting.pop(chosen, ()):
            wait_or_go(waiter)
    return [made[at] for at in range(len(found))]
