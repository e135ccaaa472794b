"""The flags of a unit, in the assembly that they give."""

from __future__ import annotations

import subprocess

import pytest

from tcw.compiler.codegen.cpp.isa import COMPILE_FLAGS
from tests.cpu.codegen.units import RUNNABLE, Unit, compiler_command, each_isa, elementwise

WIDE = [isa for isa in RUNNABLE if isa.vector_bytes > 16]


@pytest.mark.parametrize("isa", each_isa(WIDE))
def test_wide_vectors_are_cleared_before_code_without_them_runs(isa) -> None:
    """Half-used registers slow down every SSE instruction, in libm and after the kernel."""
    unit = Unit(isa, isa.vector_bytes // 4)
    elementwise(unit, "fmod", ["float32", "float32"], "float32", "float32")
    command = [*compiler_command(), *COMPILE_FLAGS, *isa.flags, "-w", "-xc++", "-", "-S", "-o", "-"]
    text = subprocess.run(
        command, input=unit.source(), capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split()[0] for line in text.splitlines() if line.split()]
    kernel = lines[lines.index("kernel_0:") :]
    before = kernel[: kernel.index("ret")]
    assert "vzeroupper" in before
    assert lines.count("vzeroupper") > 1
