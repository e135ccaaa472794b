"""How long the threads of a parallel region wait for one another, while others want the processor.

GNU's OpenMP (libgomp/config/linux/wait.h) spins some milliseconds at the end of a region before a
thread sleeps. On a machine with a processor for each thread the next region finds them awake. Where
other programs run, a thread that spins keeps the one that it waits for from running: a call of
10 ms takes half a second, and no two calls take the same. The library spins a thousand times less
while a process has more OpenMP threads than there are processors (`gomp_managed_threads`), so a
second set of threads, which sleeps, makes the others wait as such a machine needs it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_ELEMENTS = 1 << 17
"""More than ATen gives to one thread (`at::internal::GRAIN_SIZE`, 32768)."""


@contextmanager
def short_waits() -> Iterator[None]:
    """Inside of it threads that wait go to sleep at once; where the OpenMP library is another one,
    nothing changes."""
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with torch.no_grad():
                torch.sin(torch.zeros(_ELEMENTS))
        finally:
            ready.set()
        done.wait()

    thread = threading.Thread(target=hold, name="tcw-short-waits", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()
