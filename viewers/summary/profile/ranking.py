"""The order of differences, as far as the measurement can separate them.

One difference comes before another if it is surely larger: by more than the noise of both, and by a
good part of itself, since the same model measured again on the same machine differs by that much.
If neither is surely larger, what their work makes one expect decides (`expected.py`), which does
not change between measurements. So a measurement close to a limit moves only the differences whose
expected order it contradicts, and two runs agree about the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import copysign, hypot

from compiler.trace.records import CallProfile

CLOSE, CLOSE_CONTENDED = 0.2, 0.67
"""Share of the larger difference by which two have to differ: on a shared machine, the same
difference is half or twice as large in another process, so one has to be three times another …"""
APART = 0.6
"""… and share of the noise of both: 3 of the 5 standard errors in noise (9 MAD/√rounds)."""

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
    """The position of a difference among others."""

    position: int
    """From 1."""
    rank: int
    """The position of the first of those tied with it: none of them is surely larger than
    another."""


def small_below(head: CallProfile) -> float:
    """Seconds below which a difference counts as small in this call."""
    return SMALL * max(head.eager.median, head.compiled.median)


def surely_larger(one: Difference, other: Difference, *, contended: bool) -> bool:
    """Of |seconds|; `contended`: `CallProfile.contended` of the call."""
    most, least = abs(one.seconds), abs(other.seconds)
    if most <= _limit(least, contended):
        return False
    return most - least > APART * hypot(one.noise, other.noise)


def _limit(seconds: float, contended: bool) -> float:
    """The value that a surely larger difference exceeds."""
    return seconds / (1 - (CLOSE_CONTENDED if contended else CLOSE))


def standings(found: Sequence[Difference], *, contended: bool) -> list[Standing]:
    """One position for each, in the order given. Among the differences that no remaining one is
    surely larger than, the one expected to be largest in the same direction comes next (a
    topological order: Kahn, 1962); equal ones keep their order.

    A difference that has to wait does so for one that is surely larger, and looks for the next one
    only when that is placed, so most pairs are never compared.
    """

    def surely(one: int, other: int) -> bool:
        return surely_larger(found[one], found[other], contended=contended)

    sizes = [abs(one.seconds) for one in found]
    limits = [_limit(size, contended) for size in sizes]
    ascending = sorted(range(len(found)), key=sizes.__getitem__)
    ordered = sorted(sizes)
    looked = [bisect_right(ordered, limit) for limit in limits]
    """How far each has looked for surely larger ones."""
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
