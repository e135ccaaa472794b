"""A model of torch's own modules alone: no line of it is the user's, its modules tell where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records.profile import CompiledStep, EagerOperation, Region
from tests.cpu.worker.recorded import recorded

MODEL = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64))
example_inputs = (torch.randn(32, 64),)
"""


@pytest.mark.long
@pytest.mark.parametrize("grad", ["no-grad", "train"])
def test_both_sides_are_lined_up_by_module(tmp_path: Path, grad: str) -> None:
    made = recorded(tmp_path, MODEL, engine="tcw", grad=grad, until="run", profile=True, rounds=3)
    steps = {step.id: step for step in made.all(CompiledStep)}
    operations = {operation.id: operation for operation in made.all(EagerOperation)}
    forward = [
        region
        for region in made.all(Region)
        if any(operations[id].module for id in region.operations) and region.phase != "backward"
    ]
    assert {operations[id].module for one in forward for id in one.operations} >= {"0", "1", "2"}
    assert all(one.steps for one in forward if any(operations[o].launches for o in one.operations))
    # what prepares a call (its inputs are copied) is not part of it
    assert not [step.name for step in steps.values() if step.name in ("aten.copy_", "aten.set_")]
