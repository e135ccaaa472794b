"""Kernels on a GPU against float64: attentions too, and graphs that our engine leaves to ATen;
the optimizer's step by the device's clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import Kernel, KernelPrecision
from tcw.compiler.trace.records.profile import Account, CompiledStep, EagerOperation, Region
from tests.cpu.worker.recorded import recorded

MODEL = """
import torch
from torch.nn import functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(128, 384), torch.nn.Linear(128, 128)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 64, 3, 4, 32).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.gelu(self.out(y.transpose(1, 2).reshape(2, 64, 128)))


torch.manual_seed(0)
model = Net().cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters())
example_inputs = (torch.randn(2, 64, 128, device="cuda", dtype=torch.bfloat16),)
"""


@pytest.mark.parametrize("engine", ["inductor", "tcw"])
def test_every_kernel_is_compared(tmp_path: Path, engine: str) -> None:
    found = recorded(
        tmp_path,
        MODEL,
        engine=engine,
        grad="train",
        until="run",
        profile=True,
        verify=True,
        rounds=5,
        timeout=400.0,
    )
    kernels = {kernel.id: kernel for kernel in found.all(Kernel)}
    every = found.all(KernelPrecision)
    assert [(kernels[one.kernel].name, one.outputs) for one in every if one.within is False] == []
    attention = [one for one in every if "attention" in kernels[one.kernel].name]
    assert {one.graph for one in attention} == {"0/0/forward", "0/0/backward"}
    assert [one.within for one in attention] == [True, True], [one.reason for one in attention]
    steps = [step for step in found.all(CompiledStep) if step.graph and step.phase != "step"]
    assert all(step.kernel in kernels for step in steps)

    (region,) = (one for one in found.all(Region) if one.phase == "step")
    assert region.eager is not None
    assert region.compiled is not None
    operations = [operation for operation in found.all(EagerOperation) if operation.phase == "step"]
    assert any(operation.kernels for operation in operations)
    assert any(step.kernels for step in found.all(CompiledStep) if step.phase == "step")
    accounts = [account for account in found.all(Account) if account.phase == "step"]
    assert ["idle" in {line.name for line in account.lines} for account in accounts] == [True, True]
