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


Told = tuple[list[Reading], int]
"""Readings, and nanoseconds that the clocks of all of them added to the call outside of them."""


class Clock(Protocol):
    """Of one call: a probe starts and stops it, `readings` gives what it saw."""

    def start(self, key: int) -> None: ...

    def stop(self, key: int) -> None: ...

    def later(self, read: Callable[[], Told]) -> None:
        """What a probe has noted in the call by the host's clock: it makes readings of that when
        the call is over. In the call that would take time, and throw out of the caches what the
        call needs next."""
        ...

    def took(self, ns: int) -> None:
        """A probe has spent this time in the call on its own account, outside of all readings."""
        ...

    def readings(self) -> list[Reading]:
        """In the order in which they were started; those inside others come after them."""
        ...


class Noted:
    """What a host's clock saw of one call."""

    def __init__(self) -> None:
        self.done: list[Reading] = []
        self.later: list[Callable[[], Told]] = []
        self.took_ns = 0
        """What probes did in the call on their own account, outside of all readings; all of it
        once `readings` was called."""

    def readings(self) -> list[Reading]:
        """In the order in which they were started; those inside others come after them."""
        later, self.later = self.later, []
        for read in later:
            found, took = read()
            self.done += found
            self.took_ns += took
        found = [one for one in self.done if one is not _PENDING]
        return sorted(found, key=lambda one: one.start)


class HostClock:
    """Wall time of this process (CLOCK_MONOTONIC)."""

    def __init__(self, cost_ns: int = 0) -> None:
        self.cost_ns = cost_ns
        """What start and stop themselves add to a reading (`own_cost`)."""
        self.calls: list[Noted] = []
        """The last is the one that is running, or has run."""
        self._open: list[tuple[int, int, int]] = []
        self.begin()

    def begin(self) -> None:
        """A further call begins."""
        self._open.clear()
        self._call = Noted()
        self.calls.append(self._call)

    def end(self) -> None:
        """The call is over."""

    def start(self, key: int) -> None:
        done = self._call.done
        place = len(done)
        done.append(_PENDING)
        self._open.append((key, place, perf_counter_ns()))

    def stop(self, key: int) -> None:
        end = perf_counter_ns()
        while self._open:  # a call that raised leaves what it had started
            opened, place, start = self._open.pop()
            if opened == key:
                ns = max(0, end - start - self.cost_ns)
                self._call.done[place] = Reading(key, start, ns)
                return

    def later(self, read: Callable[[], Told]) -> None:
        self._call.later.append(read)

    def took(self, ns: int) -> None:
        self._call.took_ns += ns

    def readings(self) -> list[Reading]:
        """Of the last call."""
        return self._call.readings()


_PENDING = Reading(-1, 0, 0)


def own_cost(tries: int = 2000) -> int:
    """Nanoseconds that a `HostClock` measures where nothing happens between start and stop."""
    clock = HostClock()
    for _ in range(tries):
        clock.start(0)
        clock.stop(0)
    return sorted(one.ns for one in clock.readings())[tries // 2]
