"""The launcher of this process with its memory pool, and the units that it calls.

The launcher is compiled once per machine; it and each unit are loaded once per process.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

from tcw.compiler.codegen.launcher.sources import launcher_text
from tcw.compiler.control.hooks import Missing
from tcw.compiler.runtime.addresses import Addresses, addresses
from tcw.compiler.runtime.artifact import SegmentEntry
from tcw.compiler.runtime.libraries import Library, LibrarySource, library
from tcw.compiler.runtime.store import FileStore
from tcw.compiler.runtime.toolchain import LAUNCHER_LIBRARIES, Compiler, NoCompiler, launcher_flags

POOL_VARIABLE = "TCW_POOL_BYTES"
POOL_LIMIT = 1 << 30

_lock = threading.Lock()
_loaded: list[Launcher] = []
_units: dict[str, LoadedUnit] = {}


class PoolCounts(ctypes.Structure):
    """`PoolCounts` of codegen/launcher/pool.cpp: the pool of large outputs and arenas."""

    _fields_ = [
        (name, ctypes.c_long)
        for name in ("hits", "misses", "kept_bytes", "kept_blocks", "capacity", "seconds")
    ]


class Launcher:
    """The loaded launcher. It is never unloaded, since tensors may use its memory until the end."""

    def __init__(self, handle: ctypes.CDLL, library: Library) -> None:
        self.handle = handle
        self.library = library
        self.address = ctypes.addressof(ctypes.c_char.in_dll(handle, "launcher_calls"))
        self._counts = PoolCounts.in_dll(handle, "pool_counts")
        self._trim = handle.pool_trim
        self._trim.argtypes = [ctypes.c_long, ctypes.c_long]
        self._trim.restype = ctypes.c_long
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
        self.new_tensor: Callable[[int, int, Any], Any] = new(("new_tensor", handle))
        """A tensor on the CPU, large ones in pooled memory: the number of its dtype, its rank, and
        an array of its bytes, sizes and strides."""

    def pool(self) -> PoolCounts:
        """The state of the pool at this moment."""
        return PoolCounts.from_buffer_copy(self._counts)

    def limit_pool(self, capacity: int) -> None:
        """Retain at most this many unused bytes; with 0, torch allocates every output."""
        self._counts.capacity = capacity
        self._trim(capacity, 1 << 40)

    def release_pool(self) -> int:
        """Free the unused memory and return the number of bytes freed."""
        freed: int = self._trim(0, 1 << 40)
        return freed


def launcher(compiler: Compiler | NoCompiler, store: FileStore) -> Launcher | Missing:
    """The launcher of this process, or why it has none. Raises `BuildFailed`, OSError."""
    found = addresses()
    if isinstance(found, Missing):
        return found
    with _lock:
        if not _loaded:
            if isinstance(compiler, NoCompiler):
                return Missing(compiler.reason)
            made = library(
                LibrarySource(launcher_text(), launcher_flags(), LAUNCHER_LIBRARIES),
                compiler,
                store,
            )
            _loaded.append(_load(made, found))
        return _loaded[0]


def release_pooled() -> int:
    """Free unused pooled memory, if there is a launcher; returns the number of bytes freed."""
    return sum(one.release_pool() for one in _loaded)


def _load(made: Library, found: Addresses) -> Launcher:
    handle = ctypes.CDLL(str(made.path))
    for name in ("python", "torch_calls", "system_calls", "objects"):
        values: tuple[int, ...] = getattr(found, name)
        table = (ctypes.c_void_p * len(values)).in_dll(handle, name)
        table[:] = values  # type: ignore[call-overload]
    result = Launcher(handle, made)
    result._counts.capacity = _pool_limit()
    # If a fork happened while another thread held the pool's lock, the child would deadlock.
    os.register_at_fork(
        before=handle.pool_lock,
        after_in_parent=handle.pool_unlock,
        after_in_child=handle.pool_unlock,
    )
    return result


@cache
def _pool_limit() -> int:
    try:
        return max(int(os.environ.get(POOL_VARIABLE, "")), 0)
    except ValueError:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return min(POOL_LIMIT, memory // 8)


class Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("words", ctypes.c_char_p),
    ]


class LoadedUnit:
    """A unit's library in this process. It is never unloaded."""

    def __init__(self, path: Path, launcher: Launcher) -> None:
        self.handle = ctypes.CDLL(str(path))
        # The functions read this table throughout their lifetime.
        self.launcher = launcher
        ctypes.c_void_p.in_dll(self.handle, "launcher").value = launcher.address

    def function(
        self, index: int, segment: SegmentEntry, otherwise: Callable[..., Any] | None = None
    ) -> Callable[..., Any]:
        """The Python function of the unit's segment `index`.

        A plain function takes tensors and sizes and returns a tuple. A boxed one takes a list,
        empties it and returns a list, as declared by `_boxed_call`. `otherwise` is called instead
        for tensors without memory: fake ones, or those on the meta device.
        """
        table = (Method * (index + 1)).in_dll(self.handle, "methods")
        made: Callable[..., Any] = _new_function(ctypes.byref(table[index]), otherwise, None)
        if not segment.boxed:
            return made
        # A built-in function has no attributes; a partial without arguments forwards calls.
        boxed = partial(made)
        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed


def _make_new_function() -> Callable[..., Any]:
    new = ctypes.pythonapi.PyCFunction_NewEx
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )
    return prototype(ctypes.cast(new, ctypes.c_void_p).value)  # type: ignore[arg-type]


_new_function = _make_new_function()


def load_unit(path: Path, launcher: Launcher) -> LoadedUnit:
    """The unit at `path`, whose name is the digest of its content. Raises OSError."""
    with _lock:
        unit = _units.get(path.name)
        if unit is None:
            unit = _units[path.name] = LoadedUnit(path, launcher)
        return unit


def functions(
    unit: LoadedUnit, segments: Iterable[SegmentEntry], otherwise: Callable[..., Any] | None
) -> dict[str, Callable[..., Any]]:
    """The functions of the segments by name; `otherwise` is for the boxed one."""
    return {
        segment.name: unit.function(i, segment, otherwise if segment.boxed else None)
        for i, segment in enumerate(segments)
    }
