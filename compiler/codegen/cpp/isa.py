"""Vector instruction sets: their widths and the compiler flags that enable them.

There are three widths: AVX-512, AVX2, and 16 bytes for every other machine (SSE2 on any x86-64,
NEON on aarch64), where the same vector types compile to whatever is available.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from tcw.compiler.processor import feature_flags

COMPILE_FLAGS = (
    "-O1",
    "-fexpensive-optimizations",  # vzeroupper before libm and the return: SSE code is slow without
    "-ftree-vectorize",
    "-ftree-slp-vectorize",  # the speed of -O2 at two thirds of its compile time
    "-ffp-contract=off",  # a*b+c rounds twice, as in ATen; math functions request fma by name
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",  # integers wrap, as in ATen
    "-fno-strict-aliasing",  # one arena holds buffers of several dtypes
    "-fno-exceptions",
    "-fno-rtti",
    "-Wno-psabi",
)
"""Flags of every unit, before those of its `Isa`. No -ffast-math: NaN and signed zeros matter."""

OVERRIDE = "TCW_ISA"
"""Environment variable that names the `Isa` to use instead of the detected one."""


@dataclass(frozen=True, slots=True)
class Isa:
    """One vector instruction set."""

    name: str
    vector_bytes: int
    flags: tuple[str, ...]
    """Compiler flags in addition to `COMPILE_FLAGS`."""
    fma: bool
    """a*b+c with a single rounding is one instruction."""
    builtins: bool = True
    """The compiler has GCC's builtins for this instruction set; otherwise the same functions are
    loops over lanes."""
    gathers: bool = False
    """An instruction gathers elements in less time than loads of each."""

    def lanes(self, itemsizes: tuple[int, ...]) -> int:
        """Lanes of a loop nest whose registers hold elements of these sizes.

        A comparison mask takes four bytes per lane, and so does a 16-bit float. There are thus
        never more lanes than 32-bit elements in a vector.
        """
        return self.vector_bytes // max((4, *itemsizes))


AVX512 = Isa(
    "avx512", 64, ("-march=x86-64-v4", "-mprefer-vector-width=512"), fma=True, gathers=True
)
AVX2 = Isa("avx2", 32, ("-march=x86-64-v3",), fma=True)
PORTABLE = Isa("portable", 16, (), fma=platform.machine() in ("aarch64", "arm64"), builtins=False)
ISAS = {isa.name: isa for isa in (AVX512, AVX2, PORTABLE)}

_V3 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def runnable(cpu_flags: frozenset[str]) -> tuple[Isa, ...]:
    """The instruction sets that a CPU with these /proc/cpuinfo flags can run, widest first."""
    wide = ((AVX512, _V4), (AVX2, _V3))
    return (*(isa for isa, needs in wide if needs <= cpu_flags), PORTABLE)


def detect() -> Isa:
    """The widest instruction set of this machine, or the one that `TCW_ISA` names.

    Raises ValueError for a name that is not in `ISAS`.
    """
    named = os.environ.get(OVERRIDE)
    if not named:
        return runnable(feature_flags())[0]
    if named not in ISAS:
        raise ValueError(f"{OVERRIDE}={named!r}: not one of {', '.join(ISAS)}")
    return ISAS[named]
