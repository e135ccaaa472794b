"""torch's own vector functions (SLEEF, in libtorch_cpu), which units of kernels may call."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch

from compiler.codegen.cpp.vocabulary import sleef
from compiler.control.hooks import Hook, lacking


@cache
def missing() -> str:
    """Why they cannot be used; "" if they can."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return str(lacking(f"no {path.name}"))
    for name in sleef.names():
        if not hasattr(library, name):
            return str(lacking(f"{path.name} has no {name}"))
    return ""


HOOK = Hook(
    name="vector functions",
    offers="elementary functions of kernels in vectors, as torch's own",
    needs=(),
    further=missing,
    test="codegen/test_vocabulary_math.py",
)
