"""The threads of a parallel region: each on a processor of its own, and how long they had none.

Where other programs run, the system moves threads about. OpenMP's spin for milliseconds where they
wait for one another, and once two of a team are on one processor, the one that waits keeps the
other from running: a call of 10 ms takes half a second, and stays that way for seconds. Each on a
processor of its own, they only share it with the others: most kernels then run from begin to end
undisturbed, in the time that they take on a quiet machine, and some wait for a slice of the
system's (milliseconds).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import Self

import torch

Thread = int
"""As the system knows it (`gettid`)."""

_WAITING = 0.1
"""Share of the runs' time in which a thread has no processor, on a machine that others use …"""
_TOLD_BY = 0.2
"""… over so many seconds of runs."""


def team_of(threads: int) -> list[Thread]:
    """The threads that run a parallel region of the calling thread, that one first; alone where the
    OpenMP library cannot be found.

    All of GNU's, LLVM's and Intel's library start a region by `GOMP_parallel`.
    """
    caller = threading.get_native_id()
    library = _openmp()
    if threads < 2 or library is None:
        return [caller]
    found: set[Thread] = set()
    note = _REGION(lambda _: found.add(threading.get_native_id()))
    library.GOMP_parallel(note, None, threads, 0)
    return [caller, *sorted(found - {caller})]


_REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _openmp() -> ctypes.CDLL | None:
    """The library that torch runs its own regions with."""
    torch.sin(torch.zeros(1))
    try:
        with open("/proc/self/maps") as stream:
            paths = dict.fromkeys(line.split(maxsplit=5)[-1].strip() for line in stream)
    except OSError:
        return None
    for path in paths:
        if any(name in os.path.basename(path) for name in ("libgomp", "libiomp5", "libomp")):
            library = ctypes.CDLL(path)
            if hasattr(library, "GOMP_parallel"):
                return library
    return None


class Team:
    """The threads that calls of the thread which made it run on; let go at the end of the block."""

    def __init__(self, threads: int) -> None:
        self._size = threads
        self.contended = False
        """Others use the processors as well: threads wait for them more than a little."""
        self._ran = self._waited = 0.0
        """Seconds of all runs, and those that a thread waited in them, by which it is told."""
        self._before: dict[Thread, set[int]] = {}
        """Where each might run before they were kept apart."""

    @cached_property
    def threads(self) -> list[Thread]:
        return team_of(self._size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for thread, processors in self._before.items():
            _keep_on(thread, processors)
        self._before = {}

    def tell(self, ran: float, waited: float) -> None:
        """Some runs took so many seconds, in which a thread waited so long for a processor. From
        when others are seen to use the processors the threads are kept apart."""
        self._ran += ran
        self._waited += waited
        if self._ran > _TOLD_BY and self._waited > _WAITING * self._ran and not self.contended:
            self.contended = True
            self.keep_apart()

    def keep_apart(self) -> None:
        """From here on each thread stays on one processor, where there are enough for all: on that
        where it ran last, if no other one did. Where the system does not allow it nothing changes.
        """
        before = _allowed(self.threads)
        if self._before or len(before) < 2:
            return
        free = set.intersection(*before.values())
        if len(free) < len(before):
            return
        self._before = before
        for thread in before:
            last = _processor(thread)
            chosen = last if last in free else min(free)
            free.discard(chosen)
            _keep_on(thread, {chosen})

    def watch(self) -> Watch:
        """Of one run, which begins now."""
        return Watch(self.threads)


class Watch:
    """How long threads that were ready to run had no processor, since it was made; seconds."""

    def __init__(self, threads: Sequence[Thread]) -> None:
        self._threads = threads
        self._began = [_waited(thread) for thread in threads]
        self._caller = _waited(threads[0])

    def caller(self) -> float:
        """The calling thread, since it was asked for the last time."""
        before, self._caller = self._caller, _waited(self._threads[0])
        return self._caller - before

    def longest(self) -> float:
        """The thread that waited most of all, in the whole run."""
        now = (_waited(thread) for thread in self._threads)
        return max(after - before for before, after in zip(self._began, now, strict=True))


def _waited(thread: Thread) -> float:
    """Linux, Documentation/scheduler/sched-stats.rst; 0 where the system does not tell."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", "rb") as stream:
            return int(stream.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _allowed(team: list[Thread]) -> dict[Thread, set[int]]:
    """Where each may run; empty on a system that does not tell."""
    if not hasattr(os, "sched_getaffinity"):
        return {}
    try:
        return {thread: os.sched_getaffinity(thread) for thread in team}
    except OSError:
        return {}


def _keep_on(thread: Thread, processors: set[int]) -> None:
    try:
        os.sched_setaffinity(thread, processors)
    except OSError:  # it has ended, or may not be told
        return


def _processor(thread: Thread) -> int | None:
    """Where a thread ran last (`proc_pid_stat(5)`, field 39)."""
    try:
        with open(f"/proc/self/task/{thread}/stat") as stream:
            return int(stream.read().rpartition(")")[2].split()[36])
    except (OSError, ValueError, IndexError):
        return None
