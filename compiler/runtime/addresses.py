"""Addresses of functions in Python, torch and libc that the launcher calls, each looked up once.

All of them are checked before anything is compiled. If a torch lacks one, graphs run through
`python_path` and the status reports what is missing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tcw.compiler.control.hooks import Hook, Missing, lacking, resolve

PYTHON = (
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyList_New",
    "PyList_SetItem",
    "PyList_Size",
    "PyList_GetItem",
    "PyList_SetSlice",
    "PyLong_AsLong",
    "PyLong_FromLong",
    "PyErr_Occurred",
    "PyErr_Clear",
    "PyErr_SetString",
    "PyErr_Format",
    "PyObject_Vectorcall",
    "PyObject_GetAttrString",
    "Py_IncRef",
    "Py_DecRef",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
"""In the order of `PythonCalls` in codegen/launcher/addresses.cpp; likewise the tables below."""

SYSTEM = ("aligned_alloc", "free", "pthread_mutex_lock", "pthread_mutex_unlock", "clock_gettime")

DATA_POINTER = "torch:_C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr"
"""Address of a function from a Python tensor to data_ptr() (torch/csrc/dynamo/guards.cpp)."""

WRAP = "_Z16THPVariable_WrapRKN2at10TensorBaseE"
"""THPVariable_Wrap(at::TensorBase const&), torch/csrc/autograd/python_variable.h."""

TORCH = (
    "aoti_torch_empty_strided",
    "aoti_torch_get_data_ptr",
    "aoti_torch_delete_tensor_object",
    WRAP,
    "aoti_torch__reinterpret_tensor",
    "torch_from_blob",
)
"""They follow the data pointer. From torch's C ABI (torch/csrc/inductor/aoti_torch/c/shim.h and
torch/csrc/stable/c/shim.h)."""

OBJECTS = (None, IndexError, RuntimeError, TypeError, MemoryError)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The tables of codegen/launcher/addresses.cpp."""

    python: tuple[int, ...]
    torch_calls: tuple[int, ...]
    system_calls: tuple[int, ...]
    objects: tuple[int, ...]


@cache
def addresses() -> Addresses | Missing:
    """All addresses, or what is missing."""
    try:
        return Addresses(
            python=functions(ctypes.pythonapi, PYTHON, "Python"),
            torch_calls=(_data_pointer(), *_in_torch()),
            system_calls=functions(ctypes.CDLL(None), SYSTEM, "the C library"),
            objects=tuple(id(thing) for thing in OBJECTS),
        )
    except Missing as missing:
        return missing
    except OSError as error:
        return lacking(str(error))


def missing() -> str:
    """Why compiled graphs are called through Python; "" if they are called directly."""
    found = addresses()
    return str(found) if isinstance(found, Missing) else ""


HOOK = Hook(
    name="launcher",
    offers="direct calls of compiled graphs, without Python on the way to the kernels",
    needs=(DATA_POINTER,),
    further=missing,
    test="runtime/test_launcher.py",
)


def _data_pointer() -> int:
    found = resolve(DATA_POINTER)
    if not isinstance(found, int) or not found:
        raise lacking(f"{DATA_POINTER} is not an address")
    return found


def _in_torch() -> tuple[int, ...]:
    cpu, python = map(torch_library, ("libtorch_cpu.so", "libtorch_python.so"))
    return tuple(functions(python if name == WRAP else cpu, [name])[0] for name in TORCH)


def torch_library(name: str) -> ctypes.CDLL:
    """One of torch's libraries. Raises `Missing`, OSError."""
    path = Path(torch.__file__).parent / "lib" / name
    if not path.exists():
        raise lacking(f"no {name}")
    return ctypes.CDLL(str(path))


def functions(library: ctypes.CDLL, names: Iterable[str], owner: str = "torch") -> tuple[int, ...]:
    """The addresses of these functions of a library of this owner. Raises `Missing`."""
    found = []
    for name in names:
        try:
            function: Any = getattr(library, name)
        except AttributeError:
            if owner == "torch":
                raise lacking(f"no {name}") from None
            raise Missing(f"not available in {owner}: no {name}") from None
        found.append(ctypes.cast(function, ctypes.c_void_p).value or 0)
    return tuple(found)
