"""The C library's allocator during a timing.

When large blocks are freed, glibc may return them to the system or keep them, depending on the rest
of its heap (mallopt(3)). The same call then takes page faults in one round and none in the next,
and a kernel that writes 4 MB takes three times as long. While both sides are timed, freed memory is
kept. Some memory is touched beforehand: aligned blocks seldom fit where a block of the same size
was freed, so the heap grows for a while.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_WHILE = {"trim threshold": (-1, 1 << 30), "top pad": (-2, 64 << 20), "most mmaps": (-4, 0)}
"""Parameter and value of each option: nothing is mapped separately, and the heap only grows."""
_TOUCHED = 512 << 20
"""Bytes."""
_AFTER = {"trim threshold": 128 << 10, "top pad": 0, "most mmaps": 1 << 16}
"""glibc's defaults, except that its thresholds no longer adapt to what is freed."""


@contextmanager
def freed_memory_is_kept() -> Iterator[None]:
    """Inside, freed memory is not returned to the system; does nothing with another C library."""
    library = ctypes.CDLL(None)
    set_ = getattr(library, "mallopt", None)
    if set_ is None:
        yield
        return
    for parameter, value in _WHILE.values():
        set_(parameter, value)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    block = library.malloc(_TOUCHED)
    if block:
        ctypes.memset(block, 0, _TOUCHED)
        library.free(block)
    try:
        yield
    finally:
        for name, (parameter, _) in _WHILE.items():
            set_(parameter, _AFTER[name])
