"""Compile small kernels written through the vocabulary and call them on tensors."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from _pytest.mark import ParameterSet

from tcw.compiler.codegen.cpp.isa import COMPILE_FLAGS, Isa, runnable
from tcw.compiler.codegen.cpp.vocabulary import Lanes, Vocabulary
from tcw.compiler.processor import feature_flags
from tcw.compiler.runtime.toolchain import (
    Compiler,
    find_compiler,
    instruction_set,
    unit_libraries,
)

COMPILER = find_compiler()
RUNNABLE = [instruction_set(COMPILER, isa) for isa in runnable(feature_flags())]
WIDTHS = [
    *((isa, isa.vector_bytes // size) for isa in RUNNABLE for size in (4, 8)),
    (RUNNABLE[0], 1),
    (RUNNABLE[-1], 1),
]
"""Every instruction set that this machine runs, with the lanes of a 4-byte and an 8-byte nest."""


def each_isa(isas: Sequence[Isa]) -> list[ParameterSet]:
    """Parameters for one test each; those between the widest and the portable one are long."""
    return [pytest.param(isa, id=isa.name, marks=_tier(isa)) for isa in isas]


def _tier(isa: Isa) -> tuple[pytest.MarkDecorator, ...]:
    ends = (RUNNABLE[0].name, RUNNABLE[-1].name)
    return () if isa.name in ends else (pytest.mark.long,)


LONG_WIDTHS = (WIDTHS[-4], WIDTHS[-2])
"""The portable set's 4-byte nest, which `test_nests.py` has in many forms, and one lane of the
widest set, which is that of the portable one."""
each_width = pytest.mark.parametrize(
    ("isa", "lanes"),
    [
        pytest.param(
            isa,
            lanes,
            id=f"{isa.name}-{lanes}",
            marks=pytest.mark.long if (isa, lanes) in LONG_WIDTHS else _tier(isa),
        )
        for isa, lanes in WIDTHS
    ],
)
"""A test for each of `WIDTHS`."""


def compiler_command() -> tuple[str, ...]:
    """The compiler that the engine would take: `CXX=clang++ pytest tests/cpu/codegen`."""
    assert isinstance(COMPILER, Compiler), COMPILER.reason
    return COMPILER.command


class Unit:
    """One translation unit of `lanes`-wide kernels: write them all, then `build`, then `run`."""

    def __init__(self, isa: Isa, lanes: int) -> None:
        self.isa = isa
        self.vocabulary = Vocabulary(isa, sleef=True)
        self.lanes: Lanes = self.vocabulary.lanes(lanes)
        self.kernels: list[str] = []
        self._library: ctypes.CDLL | None = None

    def kernel(self, body: str) -> int:
        """A kernel whose body sees `void** p`, `long n` and `int* error`; returns its number."""
        name = f"kernel_{len(self.kernels)}"
        self.kernels.append(f'extern "C" void {name}(void** p, long n, int* error) {{ {body} }}')
        return len(self.kernels) - 1

    def source(self) -> str:
        return self.vocabulary.prelude() + "\n".join(self.kernels)

    def build(self) -> None:
        assert isinstance(COMPILER, Compiler), COMPILER.reason
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "unit.cpp"), Path(folder, "unit.so")
            source.write_text(self.source())
            command = [
                *COMPILER.command,
                *COMPILE_FLAGS,
                *self.isa.flags,
                "-Wall",
                "-Wno-unused-function",
                "-Wno-tautological-compare",
            ]
            if COMPILER.is_clang:
                command.append("-Wno-ignored-optimization-argument")
            command += ["-fPIC", "-shared", str(source), "-o", str(library)]
            command += [*unit_libraries(tuple(self.vocabulary.libraries))]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[:4000]
            assert "warning" not in done.stderr, done.stderr[:4000]
            self._library = ctypes.CDLL(str(library))

    def run(self, number: int, tensors: list[torch.Tensor], n: int) -> int:
        """Call a kernel on the tensors' memory; returns the error code."""
        assert self._library is not None
        return self.call(number, [tensor.data_ptr() for tensor in tensors], n)

    def call(self, number: int, addresses: list[int], n: int) -> int:
        assert self._library is not None
        error = ctypes.c_int(0)
        table = (ctypes.c_void_p * len(addresses))(*addresses)
        function = getattr(self._library, f"kernel_{number}")
        function(table, ctypes.c_long(n), ctypes.byref(error))
        return error.value


def elementwise(unit: Unit, op: str, operand_dtypes: list[str], dtype: str, stored: str) -> int:
    """A kernel: out[i] = op(in[i], ...) for whole vectors; inputs first, then the output."""
    lanes = unit.lanes
    lines, names = [], []
    for place, operand in enumerate(operand_dtypes):
        pointer = f"(({lanes.storage(operand)}*)p[{place}] + i)"
        lines.append(f"{lanes.type(operand)} x{place} = {lanes.load(operand, pointer)};")
        names.append(f"x{place}")
    value = lanes.apply(op, names, operand_dtypes, dtype)
    lines.append(f"{lanes.type(stored)} y = {value};")
    out = f"(({lanes.storage(stored)}*)p[{len(operand_dtypes)}] + i)"
    lines.append(lanes.store(stored, out, "y"))
    return unit.kernel(f"for (long i = 0; i < n; i += {lanes.count}) {{ {' '.join(lines)} }}")


def same(ours: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Where two tensors agree; NaN agrees with NaN, and zeros of either sign with each other."""
    agree = ours == expected
    if ours.is_floating_point():
        agree |= ours.isnan() & expected.isnan()
    return agree
