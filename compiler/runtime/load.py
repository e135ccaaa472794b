"""A unit's shared library to functions that Python calls, each library loaded once a process."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from compiler.runtime.artifact import SegmentEntry
from compiler.runtime.launcher import Launcher

_lock = threading.Lock()
_units: dict[str, LoadedUnit] = {}


class Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("words", ctypes.c_char_p),
    ]


class LoadedUnit:
    """A unit's library in this process; never unloaded."""

    def __init__(self, path: Path, launcher: Launcher) -> None:
        self.handle = ctypes.CDLL(str(path))
        # The functions read this table as long as they live.
        self.launcher = launcher
        ctypes.c_void_p.in_dll(self.handle, "launcher").value = launcher.address

    def function(
        self, index: int, segment: SegmentEntry, otherwise: Callable[..., Any] | None = None
    ) -> Callable[..., Any]:
        """Python's function of the unit's segment `index`.

        A plain one takes tensors and sizes and answers a tuple; a boxed one takes a list, empties
        it, answers a list and says so by `_boxed_call`. `otherwise` is called in its place with
        tensors that have no memory: fake ones, or on the meta device.
        """
        table = (Method * (index + 1)).in_dll(self.handle, "methods")
        made: Callable[..., Any] = _new_function(ctypes.byref(table[index]), otherwise, None)
        if not segment.boxed:
            return made
        # A built-in function takes no attributes; a partial without arguments passes calls on.
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
    """The unit at `path`; its name is the digest of its content. Raises OSError."""
    with _lock:
        unit = _units.get(path.name)
        if unit is None:
            unit = _units[path.name] = LoadedUnit(path, launcher)
        return unit


def functions(
    unit: LoadedUnit,
    segments: Iterable[SegmentEntry],
    otherwise: Callable[..., Any] | None = None,
) -> dict[str, Callable[..., Any]]:
    """Each segment's function by name; `otherwise` is for the boxed one."""
    return {
        segment.name: unit.function(i, segment, otherwise if segment.boxed else None)
        for i, segment in enumerate(segments)
    }
