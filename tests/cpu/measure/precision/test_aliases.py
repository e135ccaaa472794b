"""Memory that results share, compiled and in eager."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.precision.aliases import aliases_of
from tcw.compiler.trace.records import Numerics
from tests.cpu.worker.recorded import recorded

BASE = torch.zeros(8, 8)


@pytest.mark.parametrize(
    ("outputs", "sharing"),
    [
        (BASE, {("out", "x"): "object"}),
        (BASE[2:], {("out", "x"): "memory"}),
        (BASE.clone(), {}),
        ((BASE + 1).chunk(2, 1), {}),
        (BASE.view(torch.int32)[7:], {("out", "x"): "memory"}),
        ([t := BASE + 1, t], {("out[1]", "out[0]"): "object"}),
        ((t, t[0], t[1]), {("out[1]", "out[0]"): "memory", ("out[2]", "out[0]"): "memory"}),
        ((BASE[:0], 3, None, torch.eye(2).to_sparse()), {}),
        (torch.zeros(1).expand(4), {}),
    ],
)
def test_sharing(outputs: Any, sharing: dict[tuple[str, str], str]) -> None:
    assert aliases_of(leaves(outputs), {"x": BASE, "n": 3}) == sharing


def test_columns_beside_each_other_share_nothing() -> None:
    left, right = BASE[:, :4], BASE[:, 4:]
    assert aliases_of([("out", left)], {"x": right}) == {}
    assert aliases_of([("out", BASE[:, :5])], {"x": right}) == {("out", "x"): "memory"}


MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.ones(4))
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        y = x * 2
        wrong = {wrong} and torch.compiler.is_compiling()
        return (
            self.kept.clone() if wrong else self.kept, y, y, y[1:], x.view(2, 2), self.weight, x
        )

model = Net()
example_inputs = (torch.ones(4),)
"""


@pytest.mark.parametrize("wrong", [False, True])
def test_it_is_compared(tmp_path: Path, wrong: bool) -> None:
    text = textwrap.dedent(MODEL.format(wrong=wrong))
    found = recorded(tmp_path, text, until="run", engine="tcw")
    (numerics,) = found.all(Numerics)
    assert numerics.within
    assert numerics.equal
    differences = [(one.path, one.other, one.compiled, one.eager) for one in numerics.aliases]
    assert differences == ([("out[0]", "buffer kept", "", "object")] if wrong else [])
