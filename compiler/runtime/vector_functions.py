"""torch's own vector functions (SLEEF, in libtorch_cpu), which units of kernels may call."""

from __future__ import annotations

from functools import cache

from tcw.compiler.codegen.cpp.vocabulary import sleef
from tcw.compiler.control.hooks import Hook, Missing
from tcw.compiler.runtime.addresses import functions, torch_library


@cache
def missing() -> str:
    """Why they cannot be used; "" if they can."""
    try:
        functions(torch_library("libtorch_cpu.so"), sleef.names())
    except (Missing, OSError) as error:
        return str(error)
    return ""


HOOK = Hook(
    name="vector functions",
    offers="elementary functions of kernels in vectors, as torch's own",
    needs=(),
    further=missing,
    test="codegen/test_vocabulary_math.py",
)
