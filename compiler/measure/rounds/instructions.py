"""Instructions of this process and of all that it starts, counted by the processor.

The kernel's counters (`perf_event_open(2)`), as `perf stat -e instructions:u` uses them. A count
hardly differs from run to run, also on a busy machine, where seconds do. Virtual machines often
have no counters, and systems may forbid them: then nothing is counted.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable
from functools import cache

Count = Callable[[], int | None]
"""Instructions since it was made; None if another program shared the counter meanwhile."""

_CALLS = {"x86_64": 298, "aarch64": 241}
"""Number of the system call."""
_HARDWARE, _INSTRUCTIONS = 0, 1
_SIZE = 64
"""Bytes of the first version of `perf_event_attr`."""
_INHERIT, _NOT_IN_KERNEL, _NOT_IN_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_WITH_TIMES = 1 | 2
"""Each value is followed by the time for which it was wanted and the time for which it was
counted."""
_CLOSE_ON_EXEC = 8


@cache
def counter(kind: int = _HARDWARE, event: int = _INSTRUCTIONS) -> Count | None:
    """Starts to count in this thread, and in threads and processes that it starts from now on; the
    same counter in each call. None if nothing can be counted here. `kind`, `event`: of
    `perf_event_attr`."""
    number = _CALLS.get(platform.machine())
    if number is None:
        return None
    flags = _INHERIT | _NOT_IN_KERNEL | _NOT_IN_HYPERVISOR
    head = struct.pack("=IIQQQQQ", kind, _SIZE, event, 0, 0, _WITH_TIMES, flags)
    attributes = ctypes.create_string_buffer(head.ljust(_SIZE, b"\0"), _SIZE)
    library = ctypes.CDLL(None, use_errno=True)
    file = library.syscall(number, attributes, 0, -1, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
    if file < 0:
        return None

    def count() -> int | None:
        try:
            value, wanted, counted = struct.unpack("=QQQ", os.read(file, 24))
        except (OSError, struct.error):
            return None
        return int(value) if counted and counted == wanted else None

    return count
