"""Values taken together: by key, and in sum where not all of them are known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Number = TypeVar("Number", int, float)


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Key -> the values that have it; both in the order in which they come."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def known_sum(values: Iterable[Number | None]) -> Number | None:
    """Of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def whole_sum(values: Iterable[Number | None]) -> Number | None:
    """None if one is unknown, or there are none."""
    every = list(values)
    return None if None in every else known_sum(every)
