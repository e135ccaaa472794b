"""What a call holds at its peak, block by block (benchmarks/allocations.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import allocations

pytestmark = pytest.mark.long
ROOT = Path(allocations.__file__).resolve().parent.parent
COUNTED = """
import json
import torch
from benchmarks import allocations
from tcw.compiler.engine.backend import backend

allocations.forget_environment()

def eager():
    first = torch.ones(1000)
    second = torch.ones(3000)
    del first
    return second, torch.ones(2000)

def peak(function, *inputs):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    compiled(*inputs)
    return allocations.peak(lambda: compiled(*inputs)).bytes

x = torch.randn(2048, 1000)
print(json.dumps({
    "eager": min(allocations.peak(eager).bytes for _ in range(3)),
    "column sum": peak(lambda x: (x * 2 + 1).sum(0), x),
    "rows and columns": peak(lambda x: ((y := x * 2), y.sum(0)), x),
}))
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    environment = allocations.environment(tmp_path_factory.mktemp("allocations"))
    process = subprocess.run(
        [sys.executable, "-c", COUNTED],
        cwd=ROOT,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    counts: dict[str, object] = json.loads(process.stdout)
    return counts


def test_the_count_is_exact(counted: dict[str, object]) -> None:
    assert counted["eager"] == 20_000


def test_partial_sums_of_columns_take_no_memory_beside_the_result(
    counted: dict[str, object],
) -> None:
    assert counted["column sum"] == 4000
    assert counted["rows and columns"] == 4000 + 2048 * 1000 * 4
