"""Groups and models as a GPU runs them: Triton's interpreter equals eager, and all compile.

`model_groups.py` has the fused groups that most models of `transformers` have; `count_groups` found
them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.codegen.triton.limits import Limits
from compiler.codegen.triton.unit import unit
from compiler.fusion.weights import GPU
from compiler.gpu.architectures import ARCHITECTURES
from compiler.runtime.gpu.binaries import binaries, code_of
from compiler.runtime.store import Store
from tests.cpu.codegen.interpreted_models import DTYPES, SAMPLES, group
from tests.cpu.codegen.model_groups import GROUPS
from tests.cpu.codegen.nests import programs

pytest.importorskip("triton")


def interpreted(*names: str) -> list[str]:
    """What is wrong with these in the interpreter."""
    command = [sys.executable, "-m", "tests.cpu.codegen.interpreted_models", *names]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found, "nothing ran"
    return [f"{name}: {text}" for name, text in found if text]


def compiled(arch: str, dtypes: tuple[str, ...], store: Store) -> int:
    """Compile the kernels of all groups; returns how many there are."""
    count = 0
    for name in GROUPS:
        for dtype in dtypes:
            function, inputs = group(name, dtype)
            for program in programs(function, *inputs, machine=GPU):
                made = unit(None, program, Limits(ARCHITECTURES[arch], program.graph.hints))
                assert made.device is not None
                found = binaries(made.device.text, made.device.kernels, arch, store)
                assert all(code_of(one, store) for one in found)
                count += len(found)
    return count


def test_there_are_thirty() -> None:
    assert len(GROUPS) == 30
    assert {name.rpartition("(")[2] for name in GROUPS} == {"forward)", "backward)"}


def test_groups_in_the_interpreter() -> None:
    """Forward and backward ones, in float32 and bfloat16."""
    assert interpreted("groups") == []


ARCHS = [
    pytest.param(arch, marks=[] if arch == "sm_90" else pytest.mark.long) for arch in ARCHITECTURES
]


@pytest.mark.parametrize("arch", ARCHS)
def test_groups_compile(arch: str, tmp_path: Path) -> None:
    assert compiled(arch, DTYPES, Store(tmp_path)) >= 2 * len(GROUPS)


@pytest.mark.long
@pytest.mark.parametrize("sample", SAMPLES)
def test_sample_models_in_the_interpreter(sample: str) -> None:
    assert interpreted(sample) == []
