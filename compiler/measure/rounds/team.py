"""The threads of a parallel region: each pinned to a processor, and how long they had none.

If other programs run, the system migrates threads. OpenMP threads spin for milliseconds while
waiting for each other. Once two of a team are on one processor, the waiting thread keeps the other
from running: a call of 10 ms takes half a second, and that lasts for seconds. Pinned to separate
processors, the threads share them only with other programs.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from time import perf_counter_ns
from typing import Self

import torch

from tcw.compiler.runtime.toolchain import openmp_library

Thread = int
"""As the system numbers it (`gettid`)."""

_WAITING = 0.1
"""A machine is contended if a thread has no processor for more than this share of the runs."""
_DECIDED_AFTER = 0.2
"""Seconds of runs."""
_REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def team_of(threads: int) -> list[Thread]:
    """The threads that run a parallel region of the calling thread, that thread first; only that
    thread if the OpenMP library cannot be found.

    GNU's, LLVM's and Intel's libraries all start a region by `GOMP_parallel`.
    """
    caller = threading.get_native_id()
    torch.sin(torch.zeros(1))  # loads the library that torch runs its own regions with
    library = ctypes.CDLL(openmp_library() or None)
    if threads < 2 or not hasattr(library, "GOMP_parallel"):
        return [caller]
    found: set[Thread] = set()
    note = _REGION(lambda _: found.add(threading.get_native_id()))
    library.GOMP_parallel(note, None, threads, 0)
    return [caller, *sorted(found - {caller})]


class Team:
    """The threads that run the creating thread's calls; unpinned at the end of the block."""

    def __init__(self, threads: int) -> None:
        self._size = threads
        self._contended = False
        self._ran = self._waited = 0.0
        """Seconds of all runs, and the seconds in them that a thread waited."""
        self._before: dict[Thread, set[int]] = {}
        """The processors that each thread was allowed before it was pinned."""

    @cached_property
    def threads(self) -> list[Thread]:
        return team_of(self._size)

    @property
    def contended(self) -> bool:
        """Whether other programs use the processors too: threads wait more than a little."""
        return self._contended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for thread, processors in self._before.items():
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(thread, processors)
        self._before = {}

    def note(self, ran: float, waited: float) -> None:
        """Runs took `ran` seconds, in which a thread waited `waited` seconds for a processor. Once
        this shows other programs on the processors, the threads are pinned."""
        self._ran += ran
        self._waited += waited
        waiting = self._ran > _DECIDED_AFTER and self._waited > _WAITING * self._ran
        if waiting and not self._contended:
            self._contended = True
            self.keep_apart()

    def keep_apart(self) -> None:
        """Pin each thread to a separate processor if there are enough. If the system does not allow
        pinning, nothing changes."""
        if self._before or not hasattr(os, "sched_setaffinity"):
            return
        with suppress(OSError):
            before = {thread: os.sched_getaffinity(thread) for thread in self.threads}
            free = sorted(set.intersection(*before.values()))
            if 1 < len(before) <= len(free):
                self._before = before
                for thread, processor in zip(before, free, strict=False):
                    os.sched_setaffinity(thread, {processor})

    def watch(self) -> Watch:
        """Watch one run, which begins now."""
        return Watch(self.threads)


class Watch:
    """Seconds that threads were ready to run without a processor, since its creation."""

    def __init__(self, threads: Sequence[Thread]) -> None:
        self._threads = threads
        self._began = [waited(thread) for thread in threads]
        self._since = perf_counter_ns()
        self._caller = waited(threads[0])

    def caller(self, began: int, ended: int) -> float:
        """Seconds of the calling thread between these two times of `perf_counter_ns`, of which the
        first is after the last call of this method.

        The system's count is read before the one and after the other, so that reading takes none
        of the time between them. What passes in between is microseconds, unless the thread waits
        right there, as the system likes to switch threads when a read returns: that wait is not
        part of the time, and is left out.
        """
        last, since = self._caller, self._since
        self._since = perf_counter_ns()
        self._caller = waited(self._threads[0])
        outside = (began - since) + (perf_counter_ns() - ended)
        seconds = self._caller - last - outside / 1e9
        return min(max(0.0, seconds), (ended - began) / 1e9)

    def longest(self) -> float:
        """Seconds of the thread that waited longest in the whole run."""
        now = (waited(thread) for thread in self._threads)
        return max(after - before for before, after in zip(self._began, now, strict=True))


def waited(thread: Thread) -> float:
    """Seconds that a thread was ready to run without a free processor (Linux,
    Documentation/scheduler/sched-stats.rst); 0 if the system does not report it."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", "rb") as stream:
            return int(stream.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
