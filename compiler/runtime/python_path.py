"""Segments called through ctypes, for a torch that lacks functions that the launcher calls.

The same kernels run on the same memory, a few microseconds slower per call: Python unpacks the
arguments and allocates the outputs, following the unit's description of each segment.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from tcw.compiler.codegen.launcher.segment import SCALAR_TYPES
from tcw.compiler.runtime.artifact import SegmentEntry

Long = ctypes.c_long
Run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
ShapesOf = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

DTYPES = {number: getattr(torch, name) for name, number in SCALAR_TYPES.items()}

NEW, VIEW, ARGUMENT, NUMBER, NOTHING = range(5)
DIVISION_BY_ZERO, INDEX_OUT_OF_RANGE = 1, 2
OF_INDEX, OF_GATHER, OF_TARGET = 1, 2, 3
"""As in codegen/launcher/interface.cpp."""


class _Output(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("dtype", "rank", "shape")]


class _Result(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("kind", "index", "rank", "shape")]


class _Segment(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("arguments", ctypes.c_char_p),
        ("parameters", ctypes.c_int),
        ("tensors", ctypes.c_int),
        ("numbers", ctypes.c_int),
        ("outputs", ctypes.c_int),
        ("results", ctypes.c_int),
        ("output", ctypes.POINTER(_Output)),
        ("result", ctypes.POINTER(_Result)),
        ("shape_count", ctypes.c_int),
        ("shapes", ctypes.POINTER(Long)),
        ("shapes_of", ShapesOf),
        ("run", Run),
        ("device", ctypes.c_int),
    ]


class PythonSegment:
    """One segment of a loaded unit."""

    def __init__(
        self, handle: ctypes.CDLL, entry: SegmentEntry, otherwise: Callable[..., Any] | None = None
    ) -> None:
        self._about = _Segment.in_dll(handle, entry.name)
        self._handle = handle
        self._boxed = entry.boxed
        self._otherwise = otherwise
        device = self._about.device
        self._device = torch.device("cuda", device) if device >= 0 else torch.device("cpu")
        self._kinds = self._about.arguments.decode()
        if entry.boxed:
            self._boxed_call = True

    def __call__(self, *given: Any) -> Any:
        arguments = list(given[0]) if self._boxed else list(given)
        if len(arguments) != len(self._kinds):
            raise TypeError("a compiled graph was called with a wrong number of arguments")
        tensors = [a for a, kind in zip(arguments, self._kinds, strict=True) if kind == "t"]
        numbers = [a for a, kind in zip(arguments, self._kinds, strict=True) if kind == "n"]
        if any(not t.data_ptr() and t.numel() for t in tensors):
            if self._otherwise is None:
                raise RuntimeError(
                    "a compiled graph was called with a tensor that has no memory (fake or meta)"
                )
            return self._otherwise(*given)
        results = self._perform(arguments, tensors, numbers)
        if not self._boxed:
            return tuple(results)
        given[0].clear()
        return results

    def _perform(self, arguments: list[Any], tensors: list[Any], numbers: list[int]) -> list[Any]:
        about = self._about
        given = (Long * max(len(numbers), 1))(*numbers)
        shapes: Any = about.shapes
        if not shapes:
            shapes = (Long * about.shape_count)()
            about.shapes_of(given, shapes)
        outputs = [self._new(about.output[i], shapes) for i in range(about.outputs)]
        arena = torch.empty(shapes[0] + 64, dtype=torch.uint8, device=self._device)
        code = self._run([*tensors, *outputs], given, arena)
        if code & 15 == INDEX_OUT_OF_RANGE:
            raise _out_of_range(code, arena)
        if code:
            raise RuntimeError("ZeroDivisionError" if code == DIVISION_BY_ZERO else f"error {code}")
        return [
            self._answer(about.result[i], arguments, outputs, shapes) for i in range(about.results)
        ]

    def _run(self, tensors: list[Any], given: Any, arena: Any) -> int:
        """Run the kernels on this memory and return an error code."""
        pointers = [t.data_ptr() for t in tensors]
        aligned = (arena.data_ptr() + 63) & ~63
        code: int = self._about.run(
            (ctypes.c_void_p * max(len(pointers), 1))(*pointers), given, aligned
        )
        return code

    def _new(self, output: Any, shapes: Any) -> Any:
        start, rank = output.shape + 1, output.rank
        sizes = [shapes[start + d] for d in range(rank)]
        strides = [shapes[start + rank + d] for d in range(rank)]
        dtype = DTYPES[output.dtype]
        return torch.empty_strided(sizes, strides, dtype=dtype, device=self._device)

    def _answer(self, result: Any, arguments: list[Any], outputs: list[Any], shapes: Any) -> Any:
        if result.kind == NEW:
            return outputs[result.index]
        if result.kind == ARGUMENT:
            return arguments[result.index]
        if result.kind == NUMBER:
            return shapes[result.shape]
        if result.kind == NOTHING:
            return None
        start, rank = result.shape, result.rank
        sizes = [shapes[start + 1 + d] for d in range(rank)]
        strides = [shapes[start + 1 + rank + d] for d in range(rank)]
        return torch.as_strided(outputs[result.index], sizes, strides, shapes[start])


def _out_of_range(code: int, arena: torch.Tensor) -> Exception:
    """The exception that eager raises, like `refuse` in codegen/launcher/calls.cpp."""
    index, size = (Long * 2).from_address((arena.data_ptr() + 63) & ~63)
    words = code >> 4 & 15
    if words in (OF_INDEX, OF_GATHER):
        text = f"index {index} is out of bounds for dimension {code >> 8} with size {size}"
        return IndexError(text) if words == OF_INDEX else RuntimeError(text)
    if words == OF_TARGET:
        return IndexError(f"Target {index} is out of bounds.")
    return IndexError("index out of range in self")


def python_functions(
    path: Path, segments: Iterable[SegmentEntry], otherwise: Callable[..., Any] | None = None
) -> dict[str, Callable[..., Any]]:
    """A unit's segments by name, as callables that need no launcher. Raises OSError."""
    handle = ctypes.CDLL(str(path))
    return {
        entry.name: PythonSegment(handle, entry, otherwise if entry.boxed else None)
        for entry in segments
    }
