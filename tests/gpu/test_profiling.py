"""A call on a GPU taken apart: times are the device's, and kernels have its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records.profile import (
    Account,
    CallProfile,
    CompiledStep,
    EagerOperation,
    Region,
)
from tests.cpu.worker.recorded import recorded

MODEL = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)
).cuda()
example_inputs = (torch.randn(2048, 512, device="cuda"),)
"""


@pytest.mark.parametrize("grad", ["no-grad", "train"])
@pytest.mark.parametrize("engine", ["inductor", "tcw"])
def test_a_profile_reads_the_devices_clock(tmp_path: Path, engine: str, grad: str) -> None:
    found = recorded(tmp_path, MODEL, engine=engine, profile=True, until="run", rounds=7, grad=grad)
    (head,) = found.all(CallProfile)
    assert head.clock == "device"
    steps = found.all(CompiledStep)
    kernels = [one for one in steps if one.kind == "kernel"]
    assert kernels
    for step in kernels:
        assert step.time is not None
        assert step.host is not None
        assert step.launches >= 1
        assert step.kernels
    working = [operation for operation in found.all(EagerOperation) if operation.launches]
    assert working
    assert not [(one.operation, one.time) for one in working if not one.kernels]
    assert any(region.steps and region.operations for region in found.all(Region))
    for account in found.all(Account):
        assert "idle" in {line.name for line in account.lines} or account.lines
        sums = sum(line.time.median for line in account.lines)
        assert sums + account.remainder == pytest.approx(account.measured.median)
