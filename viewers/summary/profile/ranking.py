"""The order of differences: by size. Those that the measurement cannot tell apart share a rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

from tcw.compiler.trace.records import CallProfile

SMALL = 0.01
"""Share of a call below which a difference is small."""


@dataclass(frozen=True)
class TimeDifference:
    """compiled - eager; both in seconds."""

    seconds: float
    noise: float


@dataclass(frozen=True)
class Ranked:
    """The position of a difference among others."""

    position: int
    """From 1."""
    rank: int
    """The position of the first of those tied with it."""


def small_below(head: CallProfile) -> float:
    """Seconds below which a difference counts as small in this call."""
    return SMALL * max(head.eager.median, head.compiled.median)


def standings(found: Sequence[TimeDifference]) -> list[Ranked]:
    """One for each, in the order given; equal ones keep their order. A difference is tied with the
    first of the rank before it unless that is larger by more than the noise of both."""
    made: dict[int, Ranked] = {}
    rank, first = 0, TimeDifference(0.0, 0.0)
    order = sorted(range(len(found)), key=lambda at: -abs(found[at].seconds))
    for position, at in enumerate(order, start=1):
        one = found[at]
        apart = abs(first.seconds) - abs(one.seconds) > hypot(first.noise, one.noise)
        if not rank or apart:
            rank, first = position, one
        made[at] = Ranked(position, rank)
    return [made[at] for at in range(len(found))]
