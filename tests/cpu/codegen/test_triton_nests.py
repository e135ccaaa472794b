"""Loop nests as Triton, without a GPU: in the interpreter, and compiled for each architecture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.triton_unit import unit
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.runtime.gpu.binaries import binaries, code_of
from tcw.compiler.runtime.gpu.triton_stages import compiled, load_module
from tcw.compiler.runtime.store import FileStore
from tests.cpu.codegen.nest_cases import Case, floats, mixed
from tests.cpu.codegen.nests import programs
from tests.long import mostly_long

pytest.importorskip("triton")


def interpreted(*names: str) -> list[str]:
    """What is wrong with these cases in the interpreter."""
    command = [sys.executable, "-m", "tests.cpu.codegen.triton_interpreter", *names]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found, "no case ran"
    return [f"{name}: {text}" for name, text in found if text]


def test_the_interpreter_says_what_the_loops_mean() -> None:
    """One process, which takes seconds to start."""
    assert interpreted("some dynamic", "some two ways", "some moments", "small") == []


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        *(
            "float32",
            "dynamic",
            "two ways",
            "moments",
            "mixed",
            "windows",
            "bfloat16",
            "float16",
            "float64",
        ),
        *("int64", "uint8"),
    ],
)
def test_the_interpreter_says_so_of_others(name: str) -> None:
    assert interpreted(name) == []


def norms(dtype: torch.dtype) -> dict[str, Case]:
    """A layer norm with its gradients, and a softmax in several forms."""

    def r(*shape: int) -> torch.Tensor:
        return torch.randn(*shape).to(dtype)

    return {
        "layer norm": (lambda x, w: F.layer_norm(x, (1024,), w, w), (r(64, 1024), r(1024))),
        "rows with sums over them": (
            lambda x, y: (x * (x * y).sum(-1, keepdim=True), (x * y).sum(0)),
            (r(4096, 256), r(4096, 256)),
        ),
        "softmax": (lambda x: x.softmax(-1), (r(64, 300),)),
        "long softmax": (lambda x: x.softmax(-1), (r(8, 40000),)),
        "column sum": (lambda x: x.float().sum(0), (r(8192, 64),)),
        "sum": (lambda x: x.float().sum(), (r(1024, 1024),)),
        "transposed": (lambda x: x + x.t(), (r(256, 256),)),
    }


def built(cases: dict[str, Case], arch: str, store: FileStore) -> int:
    """Compile the kernels of these cases; returns how many there are."""
    count = 0
    for fn, inputs in cases.values():
        for program in programs(fn, *inputs, machine=GPU):
            made = unit(None, program, Limits(ARCHITECTURES[arch], program.graph.hints))
            assert made.device is not None
            found = binaries(made.device.text, made.device.kernels, arch, store)
            assert [one.threads for one in found] == [32 * k.warps for k in made.device.kernels]
            assert all(code_of(one, store) for one in found)
            count += len(found)
    return count


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


@pytest.mark.parametrize("arch", mostly_long(ARCHITECTURES, ("sm_90",)))
def test_kernels_compile_without_a_gpu(arch: str, store: FileStore) -> None:
    assert built(norms(torch.bfloat16), arch, store) >= 7


@pytest.mark.long
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_all_nests_compile_without_a_gpu(arch: str, dtype: torch.dtype, store: FileStore) -> None:
    assert built({**floats(dtype), **mixed(), **norms(dtype)}, arch, store) > 30


def test_a_binary_is_made_once(store: FileStore) -> None:
    case = {"softmax": norms(torch.float32)["softmax"]}
    built(case, "sm_90", store)
    (entry,) = (store.folder / "binaries").iterdir()
    (code,) = (store.folder / "objects").glob("*.cubin")
    before = entry.stat().st_ino, code.stat().st_ino
    built(case, "sm_90", store)
    assert (entry.stat().st_ino, code.stat().st_ino) == before
    code.write_bytes(b"damaged")
    built(case, "sm_90", store)
    assert code.read_bytes() != b"damaged"


def test_an_index_is_checked_in_the_binary(store: FileStore) -> None:
    def ptx(fn, *inputs: torch.Tensor) -> str:
        (program,) = programs(fn, *inputs, machine=GPU)
        module = unit(None, program, Limits(ARCHITECTURES["sm_90"], {})).device
        assert module is not None
        made = compiled(load_module(module.text), module.kernels[0], "sm_90", texts=True)
        return str(made.asm["ptx"])

    table, places = torch.randn(8, 4), torch.tensor([1, 2])
    assert "__assertfail" in ptx(lambda t, i: t[i] * 2, table, places)
    assert "__assertfail" not in ptx(lambda t: t * 2, table)
