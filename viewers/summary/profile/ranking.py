"""Which differences come before which, as far as the measurement can tell them apart.

The largest one that is left leads, and with it stand all that may be as large: those whose
difference to it is inside what the noise of both allows, or a small part of it, as the same model
measured again on the same machine differs by so much. They share a rank, and keep the order of the
program, which no measurement changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

from compiler.trace.records import CallProfile

CLOSE = 0.2
"""Share of the larger difference by which two have to differ …"""
APART = 0.6
"""… and share of the noise of both: 3 of the 5 standard errors that noise is (9 MAD/√rounds)."""

SMALL = 0.01
"""Share of a call below which a difference is small."""


def small_below(head: CallProfile) -> float:
    """Seconds below which a difference is small in this call."""
    return SMALL * max(head.eager.median, head.compiled.median)


def ranks(found: Sequence[tuple[float, float]]) -> list[int]:
    """Of (difference, noise) each: 1 for the largest |difference|; equals share a number, and the
    next one counts them all (1, 2, 2, 4)."""
    left = sorted(range(len(found)), key=lambda at: -abs(found[at][0]))
    ranked = [0] * len(found)
    while left:
        most, noise = abs(found[left[0]][0]), found[left[0]][1]
        equal = [
            at
            for at in left
            if most - abs(found[at][0]) <= max(CLOSE * most, APART * hypot(noise, found[at][1]))
        ]
        rank = 1 + len(found) - len(left)
        for at in equal:
            ranked[at] = rank
        left = [at for at in left if not ranked[at]]
    return ranked
