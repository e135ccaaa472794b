"""Loads a unit's shared library and creates its Python functions, once per process and library."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tcw.compiler.runtime.artifact import SegmentEntry
from tcw.compiler.runtime.launcher import Launcher

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
