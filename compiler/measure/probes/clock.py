"""Clocks that a probe starts and stops around everything that it times.

Keys identify what was timed. Within a call they are distinct, except for code that runs repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """One start and stop of a clock."""

    key: int
    start: int
    """Nanoseconds on the clock of `time.perf_counter_ns`; for a device, on its own clock."""
    ns: int
    """Nanoseconds between them, without the clock's own overhead. For a device: the time of its
    kernels."""
    launches: int = 1
    kernels: tuple[str, ...] = ()
    """A device's names of what ran."""
    host_ns: int | None = None
    """Host time, if `ns` is a device's."""


LateReadings = tuple[list[Reading], int]
"""The readings, and the nanoseconds that their clocks added to the call outside them."""


class Clock(Protocol):
    """The clock of one call: a probe starts and stops it; `readings` returns the result."""

    def start(self, key: int) -> None: ...

    def stop(self, key: int) -> None: ...

    def later(self, read: Callable[[], LateReadings]) -> None:
        """Defer turning a probe's notes on the host's clock into readings until the call is over.
        During the call that would take time and evict data that the call needs next from the
        caches."""
        ...

    def took(self, ns: int) -> None:
        """A probe spent this time in the call on its own work, outside all readings."""
        ...

    def readings(self) -> list[Reading]:
        """In the order in which they were started; nested readings come after the enclosing one."""
        ...


def timed_by(
    call: Callable[[list[Any]], Any], clock: Clock, key: int
) -> Callable[[list[Any]], Any]:
    """A graph's call with a clock around it."""

    def timed(arguments: list[Any]) -> Any:
        clock.start(key)
        try:
            return call(arguments)
        finally:
            clock.stop(key)

    return timed


class Noted:
    """What a host clock saw of one call."""

    def __init__(self) -> None:
        self.done: list[Reading] = []
        self.later: list[Callable[[], LateReadings]] = []
        self.took_ns = 0
        """Nanoseconds of the probes' own work in the call, outside all readings; complete once
        `readings` was called."""

    def readings(self) -> list[Reading]:
        """In the order in which they were started; nested readings come after the enclosing one."""
        later, self.later = self.later, []
        for read in later:
            found, took = read()
            self.done += found
            self.took_ns += took
        return sorted(self.done, key=lambda reading: (reading.start, -reading.ns))


class HostClock:
    """Wall time of this process (CLOCK_MONOTONIC)."""

    def __init__(self, cost_ns: int = 0) -> None:
        self.cost_ns = cost_ns
        """What start and stop themselves add to a reading."""
        self.calls: list[Noted] = []
        """The last is the current call, or the last one."""
        self._open: list[tuple[int, int]] = []
        self.begin()

    def begin(self) -> None:
        """Begin a further call."""
        self._open.clear()
        self._call = Noted()
        self.calls.append(self._call)

    def end(self) -> None:
        """The call is over."""

    def start(self, key: int) -> None:
        self._open.append((key, perf_counter_ns()))

    def stop(self, key: int) -> None:
        end = perf_counter_ns()
        while self._open:  # a call that raised may leave clocks running
            opened, start = self._open.pop()
            if opened == key:
                ns = max(0, end - start - self.cost_ns)
                self._call.done.append(Reading(key, start, ns))
                return

    def later(self, read: Callable[[], LateReadings]) -> None:
        self._call.later.append(read)

    def took(self, ns: int) -> None:
        self._call.took_ns += ns

    def readings(self) -> list[Reading]:
        """The readings of the last call."""
        return self._call.readings()
