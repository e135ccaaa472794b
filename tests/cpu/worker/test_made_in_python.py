"""A function that the model calls from Python: what the model computes there cannot be marked."""

from __future__ import annotations

from pathlib import Path

from tcw.compiler.trace.records import Recompile
from tests.cpu.worker.recorded import recorded

MODEL = """
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, rows):
        return self.up(rows).relu()


class Norm(nn.Module):
    def forward(self, x):
        return x * x.pow(2).mean(-1, keepdim=True).rsqrt()


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.experts = nn.ModuleList(Expert() for _ in range(2))

    def forward(self, x):
        y, total = self.norm(x), x
        for index, expert in enumerate(self.experts):
            (rows,) = torch.where(x[:, 0] > index - 1)
            total = total.index_add(0, rows, expert(y[rows]))
        return total


model = Mixture()
first, second = torch.ones(6, 8), torch.ones(7, 8)
first[:3, 0], second[:3, 0] = -0.5, -0.5
example_inputs = [(first,), (second,)]
"""


def test_only_what_the_caller_passes_is_to_be_marked(tmp_path: Path) -> None:
    """`rows` is a result of the model's own code, `x` the tensor that the caller has."""
    found = recorded(tmp_path, MODEL).all(Recompile)
    advice = {one.failed[0].source: one.failed[0].advice[0] for one in found}
    assert advice["L['x']"].code == "torch._dynamo.mark_dynamic(x, 0)"
    assert (advice["L['rows']"].text, advice["L['rows']"].code) == (
        "A mark before the call does not reach rows, which the model computes in Python",
        "torch.compile(model, dynamic=True)",
    )
