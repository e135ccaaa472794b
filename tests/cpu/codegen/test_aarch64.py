"""Generated units on aarch64: cross-compiled, run under qemu's user mode, compared with eager.

Needs `aarch64-linux-gnu-g++` and `qemu-aarch64` (Debian: g++-aarch64-linux-gnu, qemu-user).
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.codegen.cpp.cpp_unit import unit
from tcw.compiler.codegen.cpp.isa import COMPILE_FLAGS, PORTABLE
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.graph import Operand
from tcw.compiler.loops.nest import Nest
from tests.cpu.codegen.nests import programs

COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
pytestmark = pytest.mark.skipif(
    not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
    reason=f"no {COMPILER} or no {EMULATOR} on this machine",
)

NEON = dataclasses.replace(PORTABLE, fma=True)
"""What `detect` returns on aarch64."""

ALONE = """
extern "C" void GOMP_parallel(void (*run)(void*), void* data, unsigned, unsigned) { run(data); }
extern "C" int omp_get_max_threads() { return 1; }
extern "C" int omp_get_num_threads() { return 1; }
extern "C" int omp_get_thread_num() { return 0; }
static char workspace[1 << 20];
"""


def chain(x: torch.Tensor) -> torch.Tensor:
    y = F.gelu(x * torch.sigmoid(x) + torch.tanh(x)) + torch.exp(-x * x)
    return y + torch.log1p(x.abs()) + torch.sin(x)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], tuple[torch.Tensor, ...]]]] = {
    "softmax": (lambda x: torch.softmax(x, -1), lambda: (torch.randn(7, 333),)),
    "layer norm": (
        lambda x, w, b: F.layer_norm(x, (100,), w, b),
        lambda: (torch.randn(5, 100), torch.randn(100), torch.randn(100)),
    ),
    "chain": (chain, lambda: (torch.randn(1001),)),
    "bfloat16": (lambda x: torch.softmax(x, -1) * 2, lambda: (torch.randn(6, 77).bfloat16(),)),
    "float16": (lambda x: x.relu() * 1.5 + 1, lambda: (torch.randn(6, 77).half(),)),
    "int64": (lambda x: x * 3 // 7 + x % 5, lambda: (torch.arange(-65, 65),)),
    "argmax": (lambda x: x.argmax(-1), lambda: (torch.randn(9, 50),)),
    "column sum": (lambda x: (x * 2).sum(0), lambda: (torch.rand(300, 37),)),
    "cumsum": (lambda x: x.cumsum(-1), lambda: (torch.randn(5, 41),)),
    "transpose": (lambda x, y: y + x.t(), lambda: (torch.randn(40, 40), torch.randn(40, 40))),
    "embedding": (
        lambda w, i: F.embedding(i, w) * 2,
        lambda: (torch.randn(20, 9), torch.arange(7) * 2),
    ),
    "bool": (lambda x: ((x > 0) & (x < 1)).any(-1), lambda: (torch.randn(5, 33),)),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_eager(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    function, make = CASES[name]
    inputs = make()
    wanted = function(*inputs)
    answer = emulated(function, inputs, tmp_path)
    found = torch.frombuffer(bytearray(answer), dtype=wanted.dtype).reshape(wanted.shape)
    torch.testing.assert_close(found, wanted)


def emulated(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], folder: Path) -> bytes:
    """The bytes of the only output of a function's only graph."""
    (program,) = programs(function, *inputs)
    made = unit(None, program, Vocabulary(NEON))
    arguments = dict(zip(program.graph.parameters, inputs, strict=True))
    sizes = {name: tensor.nbytes for name, tensor in arguments.items()}
    for memory in program.memories.values():
        assert isinstance(memory.size, int)
        sizes[memory.name] = memory.size * BYTES[memory.dtype]
    calls = []
    for step in program.steps:
        assert isinstance(step, Nest)
        name, code = made.kernels[step.name]
        pointers = ", ".join(f"memory_{pointer}" for pointer in code.pointers)
        calls.append(f"{{ void* p[] = {{{pointers}}}; {name}(p, 0, workspace, error); }}")
    (output,) = program.graph.outputs
    assert isinstance(output, Operand)
    lines = [
        "#include <cstdio>",
        made.code,
        ALONE,
        *(f"alignas(64) static char memory_{name}[{size}];" for name, size in sizes.items()),
        "int main() {",
        "alignas(8) int error[8] = {0};",
        *(f"fread(memory_{name}, 1, {sizes[name]}, stdin);" for name in arguments),
        *calls,
        f"fwrite(memory_{output.value}, 1, {sizes[output.value]}, stdout);",
        "return *error;",
        "}",
    ]
    source, binary = folder / "unit.cpp", folder / "unit"
    source.write_text("\n".join(lines))
    command = [COMPILER, "-std=c++17", "-static", *COMPILE_FLAGS, source, "-o", binary, "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    given = b"".join(bytes(tensor.contiguous().view(torch.uint8).numpy()) for tensor in inputs)
    return subprocess.run([EMULATOR, binary], input=given, check=True, capture_output=True).stdout
