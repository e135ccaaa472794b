"""The most bytes that one call holds at once, by every block that is taken and given back in it.

Exact, where the kernel's own count (VmHWM) is in portions of pages for each processor: the blocks
of whatever library, in the bytes that were asked for, from `malloc` to `mmap`. Left out are small
objects (up to 512 bytes: those of Python and torch, of which a wrapper in Python has others than a
launcher in C++) and stacks. Works in a process that was started in `environment()`.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("allocation_log.cpp")
SMALL = 512
"""Bytes of the largest block that is left out: what Python's own allocator takes for objects."""
ROOM = 1 << 21
"""Events of a call."""


class _Event(ctypes.Structure):
    _fields_ = [("address", ctypes.c_size_t), ("bytes", ctypes.c_long)]


@dataclass(frozen=True)
class Peak:
    """What a call held at the moment of its peak beyond what there was before it."""

    bytes: int
    blocks: Counter[int]
    """Bytes of a block -> how many of them it took; negative where blocks of before are gone."""


def environment(folder: Path) -> dict[str, str]:
    """For a process that counts; builds the log into `folder`. Needs `g++` and glibc.

    MKL's buffers are given back as they are in no use, our pool keeps nothing, and Python's objects
    come one by one: nothing of an earlier call serves a later one unseen. MKL takes the threads
    that it is given: by itself it takes fewer, and fewer buffers, where others use the machine.
    """
    library = folder / "allocation_log.so"
    subprocess.run(
        ["g++", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-lpthread"], check=True
    )
    return {
        "LD_PRELOAD": str(library),
        "MKL_DISABLE_FAST_MM": "1",
        "MKL_DYNAMIC": "FALSE",
        "PYTHONMALLOC": "malloc",
        "TCW_POOL_BYTES": "0",
    }


def log_is_there() -> bool:
    """Whether this process was started in `environment()`."""
    return hasattr(ctypes.CDLL(None), "log_begin")


def peak(call: Callable[[], object]) -> Peak:
    """Of one call, which has been called before; what it answers is held at the end of it."""
    log = ctypes.CDLL(None)
    events = (_Event * ROOM)()
    gc.collect()
    gc.disable()
    log.log_begin(events, ctypes.c_long(ROOM))
    try:
        kept = call()
    finally:
        count = log.log_end()
        gc.enable()
    del kept
    if count > ROOM:
        raise RuntimeError(f"a call of {count:,} allocations; there is room for {ROOM:,}")
    return _highest(event.bytes for event in events[:count] if abs(event.bytes) > SMALL)


def _highest(changes: Iterable[int]) -> Peak:
    held, most = 0, 0
    now: Counter[int] = Counter()
    found: Counter[int] = Counter()
    rising = False
    for bytes_ in changes:
        if bytes_ < 0 and rising and held > most:
            most, found = held, now.copy()
        rising = bytes_ > 0
        held += bytes_
        now[abs(bytes_)] += 1 if bytes_ > 0 else -1
    if held > most:
        most, found = held, now
    return Peak(most, Counter({size: n for size, n in found.items() if n}))


def forget_environment() -> None:
    """What this process starts (compilers) counts nothing."""
    os.environ.pop("LD_PRELOAD", None)
