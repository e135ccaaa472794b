"""The CPU generator of torch from C++: its engine, and the sample that it keeps, by exported
functions of `at::CPUGeneratorImpl` (aten/src/ATen/CPUGeneratorImpl.h).

The layout of the engine is that of `at::mt19937_data_pod`, and the generator's mutex is the first
member after the reference count. Both are checked by what they do: before numbers are drawn this
way, they are compared with eager's, and so is the generator's state after them
(`tcw.compiler.runtime.draws`).
"""

from __future__ import annotations

import ctypes
from functools import cache

import torch

from tcw.compiler.codegen.draws.text import MUTEX
from tcw.compiler.control.hooks import Hook, Missing, lacking, resolve
from tcw.compiler.runtime.addresses import functions, torch_library

_PYTHON = (
    "torch._C:_len_torch_dispatch_stack",
    "torch.utils._python_dispatch:_disable_current_modes",
    "torch:Generator._cdata",
)
"""What `tcw.compiler.runtime.draws` and `address_of` call."""

FUNCTIONS = (
    "_ZN2at16CPUGeneratorImpl6engineEv",
    "_ZN2at16CPUGeneratorImpl10set_engineENS_14mt19937_engineE",
    "_ZN2at16CPUGeneratorImpl25next_double_normal_sampleEv",
    "_ZN2at16CPUGeneratorImpl29set_next_double_normal_sampleESt8optionalIdE",
)
"""In the order of `TorchGenerator` in codegen/draws/text.py."""

_MUTEX_BYTES = 40
"""Of a mutex; an unlocked one is all zeros."""


@cache
def generator_functions() -> tuple[int, ...] | Missing:
    """Addresses of the functions, or what is missing."""
    try:
        for need in _PYTHON:
            resolve(need)
        found = functions(torch_library("libtorch_cpu.so"), FUNCTIONS)
        generator = torch.Generator()
        begin = address_of(generator) + MUTEX
    except (Missing, OSError) as error:
        return error if isinstance(error, Missing) else Missing(str(error))
    if any(ctypes.string_at(begin, _MUTEX_BYTES)):
        return lacking("a generator's mutex is elsewhere")
    return found


def address_of(generator: torch.Generator) -> int:
    """The address of its `at::CPUGeneratorImpl`. Raises `Missing`."""
    found = getattr(generator, "_cdata", None)
    if not isinstance(found, int) or not found:
        raise lacking("no torch.Generator._cdata")
    return found


def _missing() -> str:
    found = generator_functions()
    return str(found) if isinstance(found, Missing) else ""


HOOK = Hook(
    name="random numbers",
    offers="eager's random numbers without ATen's calls, several times faster",
    needs=_PYTHON,
    further=_missing,
    test="runtime/test_draws.py",
)
