"""torch's own vector functions (SLEEF, in libtorch_cpu), which units of kernels may call."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch

from compiler.codegen.cpp.vocabulary import sleef
from compiler.control.hooks import status, torch_version
from compiler.trace.records import HookStatus

NAME = "vector functions"
TEST = "codegen/test_vocabulary_math.py"


@cache
def missing() -> str:
    """Why they cannot be used; "" if they can."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return f"not available in torch {torch_version()}: no {path.name}"
    for name in sleef.names():
        if not hasattr(library, name):
            return f"not available in torch {torch_version()}: {path.name} has no {name}"
    return ""


def vector_functions_status() -> HookStatus:
    """Whether elementary functions without a polynomial run in vectors, for `tcw doctor`."""
    offers = "elementary functions of kernels in vectors, as torch's own"
    return status(NAME, offers, missing())
