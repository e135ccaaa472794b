"""Clocks that a probe starts and stops around each thing that it times.

Keys tell what was timed; those of one call are distinct but for what runs several times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """One start and stop of a clock."""

    key: int
    start: int
    """Nanoseconds, on the clock of `time.perf_counter_ns`; on a device's clock by its own."""
    ns: int
    """Between them, less what the clock itself costs. On a device: time of its kernels."""
    launches: int = 1
    kernels: tuple[str, ...] = ()
    """A device's names of what ran."""
    host_ns: int | None = None
    """Host time, where `ns` is a device's."""


class Clock(Protocol):
    """Of one call: a probe starts and stops it, `readings` gives what it saw."""

    def start(self, key: int) -> None: ...

    def stop(self, key: int) -> None: ...

    def add(self, key: int, start: int, ns: int) -> None:
        """A reading that compiled code made itself, by the same clock."""
        ...

    def later(self, read: Callable[[], None]) -> None:
        """Call this before the readings are given: what a probe has noted in the call, it makes
        readings of (`add`) when the call is over."""
        ...

    def took(self, ns: int) -> None:
        """A probe has spent this time in the call on its own account, outside of all readings."""
        ...

    def readings(self) -> list[Reading]:
        """In the order in which they were started; those inside others come after them."""
        ...


class HostClock:
    """Wall time of this process (CLOCK_MONOTONIC)."""

    def __init__(self, cost_ns: int = 0) -> None:
        self.cost_ns = cost_ns
        """What start and stop themselves add to a reading (`own_cost`)."""
        self.took_ns = 0
        """What probes did in the call on their own account, outside of all readings."""
        self._open: list[tuple[int, int, int]] = []
        self._done: list[Reading] = []
        self._later: list[Callable[[], None]] = []

    def start(self, key: int) -> None:
        place = len(self._done)
        self._done.append(_PENDING)
        self._open.append((key, place, perf_counter_ns()))

    def stop(self, key: int) -> None:
        end = perf_counter_ns()
        while self._open:  # a call that raised leaves what it had started
            opened, place, start = self._open.pop()
            if opened == key:
                self._done[place] = Reading(key, start, max(0, end - start - self.cost_ns))
                return

    def add(self, key: int, start: int, ns: int) -> None:
        self._done.append(Reading(key, start, ns))

    def later(self, read: Callable[[], None]) -> None:
        self._later.append(read)

    def forget(self) -> None:
        """Begin anew: what was read so far is none of the call."""
        self._open.clear()
        self._done.clear()
        self._later.clear()
        self.took_ns = 0

    def took(self, ns: int) -> None:
        self.took_ns += ns

    def readings(self) -> list[Reading]:
        later, self._later = self._later, []
        for read in later:
            read()
        found = [one for one in self._done if one is not _PENDING]
        return sorted(found, key=lambda one: one.start)


_PENDING = Reading(-1, 0, 0)


def own_cost(tries: int = 2000) -> int:
    """Nanoseconds that a `HostClock` measures where nothing happens between start and stop."""
    clock = HostClock()
    for _ in range(tries):
        clock.start(0)
        clock.stop(0)
    return sorted(one.ns for one in clock.readings())[tries // 2]
