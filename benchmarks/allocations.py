"""The peak memory of one call, from every block that is allocated and freed in it.

Exact, whereas the kernel's own count (VmHWM) is in batches of pages per processor. Counts the
blocks of every library, from `malloc` to `mmap`, in requested bytes. Not counted are small objects
(up to 512 bytes: those of Python and torch, of which a Python wrapper has others than a C++
launcher) and stacks. Works in a process that was started in `environment()`.
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
"""Bytes of the largest uncounted block: what Python's own allocator serves for objects."""
ROOM = 1 << 21
"""The maximum number of events in a call."""


class _Event(ctypes.Structure):
    _fields_ = [("address", ctypes.c_size_t), ("bytes", ctypes.c_long)]


@dataclass(frozen=True)
class Peak:
    """What a call held at its peak, beyond what existed before it."""

    bytes: int
    blocks: Counter[int]
    """Bytes of a block -> the number of such blocks; negative if earlier blocks were freed."""


def environment(folder: Path) -> dict[str, str]:
    """The environment for a process that counts; builds the log into `folder`. Needs `g++` and
    glibc.

    MKL frees its buffers when they are not in use, our pool keeps nothing, and Python allocates
    objects one by one, so nothing of an earlier call serves a later one unseen. MKL uses as many
    threads as it is given: by default it uses fewer, with fewer buffers, if the machine is busy.
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


def peak(call: Callable[[], object]) -> Peak:
    """The peak of one call, which must have been called before; its result is alive at the end."""
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
    """Do not count in the processes that this one starts (compilers)."""
    os.environ.pop("LD_PRELOAD", None)
