"""The C library's allocator while something is timed.

glibc gives large blocks back to the system when they are freed, or keeps them, by what else lies
on its heap (mallopt(3)): then the same call takes page faults in one round and none in the next,
and a kernel that writes 4 MB takes three times as long. While both sides are timed, what is freed
is kept, and some of it is touched before: blocks that are aligned seldom fit where one of their
size was freed, so that the heap grows for a while.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_WHILE = {"trim threshold": (-1, 1 << 30), "top pad": (-2, 64 << 20), "most mmaps": (-4, 0)}
"""Parameter and value of each option: nothing is mapped by itself, and the heap only grows."""
_TOUCHED = 512 << 20
"""Bytes."""
_AFTER = {"trim threshold": 128 << 10, "top pad": 0, "most mmaps": 1 << 16}
"""glibc's own, but that its thresholds no longer move with what is freed."""


@contextmanager
def freed_memory_is_kept() -> Iterator[None]:
    """Inside of it nothing that is freed goes back to the system; where the C library is another,
    nothing happens."""
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
