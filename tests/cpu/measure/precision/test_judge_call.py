from __future__ import annotations

import textwrap
from functools import reduce
from pathlib import Path

import pytest
import torch

from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.precision.judge import Verdict, judge_call
from tcw.compiler.measure.precision.reference import in_float64
from tcw.compiler.trace.records import Numerics
from tcw.viewers.summary.numerics import numerics_words
from tests.cpu.worker.recorded import recorded

EXACT = torch.linspace(1, 2, 1000, dtype=torch.float64)
UNIT = torch.finfo(torch.bfloat16).eps


def judged(
    compiled: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor = EXACT
) -> Verdict | None:
    return judge_call([(list(leaves(compiled)), list(leaves(eager)))], dict(leaves(exact)))


def test_the_side_that_is_further_from_float64_is_wrong() -> None:
    rounded, off = EXACT.bfloat16(), (EXACT * (1 + 4 * UNIT)).bfloat16()
    for compiled, eager, right in ((rounded, off, True), (off, rounded, False)):
        found = judged(compiled, eager)
        assert found is not None
        assert found.within is right
        errors = [float((one.double() - EXACT).abs().max()) for one in (compiled, eager)]
        assert [found.off, found.eager_off] == errors


def test_one_wrong_element_is_not_averaged_away() -> None:
    eager = (EXACT * (1 + UNIT)).bfloat16()
    compiled = EXACT.bfloat16()
    compiled[17] += 0.25
    found = judged(compiled, eager)
    assert found is not None
    assert not found.within


def test_another_order_of_a_long_sum_is_as_right() -> None:
    """A kernel's bound, which the same sum has by itself, allows it too."""
    x = torch.randn(512, 4096, generator=torch.Generator().manual_seed(0)).sin() * 2
    exact = x.double().sum(1)
    eager, other = x.sum(1), reduce(torch.add, x.unbind(1))
    found = judged(other, eager, exact)
    assert found is not None, "assert_close rejects it"
    assert found.off > 2 * found.eager_off
    assert found.within
    other[7] += 0.01
    found = judged(other, eager, exact)
    assert found is not None
    assert not found.within


def test_what_float64_does_not_decide() -> None:
    rounded, off = EXACT.bfloat16(), (EXACT * (1 + 4 * UNIT)).bfloat16()
    infinite = off.clone()
    infinite[3] = torch.inf
    assert judged(rounded, rounded) is None, "assert_close rejects nothing"
    assert judged(infinite, rounded) is None
    assert judged(rounded, off[:-1]) is None
    assert judged(rounded, off.float()) is None
    assert judged(rounded.long(), off.long() + 1) is None
    assert judged(rounded, (EXACT * 1.5).bfloat16()) is None, "eager is far off itself"
    assert judged(rounded, off, off) is None, "its reference is eager again"
    assert judged(EXACT * (1 + 1e-6), EXACT) is not None, "eager is in float64"


def test_large_models_are_not_copied() -> None:
    wide = torch.empty(1, dtype=torch.bfloat16).expand((1 << 28) + 1)
    assert in_float64(torch.sin, InputSet((wide[:5],))) is not None
    assert in_float64(torch.sin, InputSet((wide,))) is None


MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)

    def forward(self, x):
        off = {off} if torch.compiler.is_compiling() else 0.0
        return torch.softmax(self.norm(x * 1.1 + 3) * 2 - 1, -1) * 7 - x * (1 + off)

torch.manual_seed(0)
model = Net().to(torch.bfloat16)
example_inputs = (torch.randn(32, 64, dtype=torch.bfloat16, requires_grad=True),)
"""


@pytest.mark.parametrize("off", [0.0, 0.25])
def test_a_model_in_bfloat16_is_wrong_only_where_eager_is_closer(
    tmp_path: Path, off: float
) -> None:
    text = textwrap.dedent(MODEL.format(off=off))
    found = recorded(tmp_path, text, until="run", engine="tcw", grad="train")
    (numerics,) = found.all(Numerics)
    assert numerics.max_abs is not None
    assert numerics.max_abs > 1e-3
    assert numerics.compiled_off is not None
    assert numerics.eager_off is not None
    assert numerics.within is (off == 0)
    assert (numerics.compiled_off < 4 * numerics.eager_off) is (off == 0)
    assert (" eager by " in numerics_words(numerics)) is (off == 0)
