"""The results of a whole call: what rounding explains, and what it does not."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.host import Host
from tcw.compiler.measure.precision.arithmetic import widened
from tcw.compiler.measure.precision.judged import CallVerdict, judged
from tcw.compiler.measure.precision.perturbed import Perturbed
from tcw.compiler.measure.precision.reference import Reference, _Again, in_float64
from tcw.compiler.trace.records import Numerics, Settings
from tcw.compiler.trace.writer import TraceWriter
from tcw.viewers.summary.numerics import numerics_words
from tests.cpu.worker.recorded import recorded

Function = Callable[..., Any]
SETTINGS = Settings(file="", grad="no-grad")
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


@dataclass
class Called:
    """A function's call, made again."""

    function: Function
    inputs: Sequence[torch.Tensor]
    wide: bool = True
    runs: int = 0

    def perturbed(self, seed: int) -> Mapping[str, Any]:
        self.runs += 1
        with Perturbed(seed):
            return dict(leaves(self.function(*self.inputs)))

    def exact(self) -> Mapping[str, Any]:
        return dict(leaves(self.function(*map(widened, self.inputs)))) if self.wide else {}


def verdict(function: Function, inputs: Sequence[Any], ours: Any, wide: bool = True) -> CallVerdict:
    """On results `ours` of a function of these inputs."""
    eager = list(leaves(function(*inputs)))
    return judged(list(leaves(ours)), eager, Called(function, inputs, wide))


def normal(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_what_assert_close_accepts_costs_nothing() -> None:
    x = normal(64)
    called = Called(torch.sin, [x])
    found = judged([("out", x.sin() * (1 + 1e-7))], [("out", x.sin())], called)
    assert found.within
    assert not called.runs


@pytest.mark.parametrize("wide", [True, False])
def test_another_order_of_a_long_sum_is_right(wide: bool) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return (torch.sin(x) * 2).sum(1)

    x = normal(512, 4096)
    terms = torch.sin(x) * 2
    other = reduce(torch.add, terms.unbind(1))
    assert verdict(model, [x], other, wide).within
    shorter = terms[:, :-1].sum(1)
    wrong = other.clone()
    wrong[7] += 0.01
    for ours in (shorter, wrong):
        found = verdict(model, [x], ours, wide)
        assert found.within is False
        assert found.wrong == ("out",)


def trained(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
    w = w.detach().requires_grad_()
    hidden = torch.relu(x @ w - b)
    hidden.square().sum().backward()
    return hidden.detach(), w.grad


def test_the_side_of_a_kink_on_which_rounding_puts_a_value() -> None:
    """A derivative is 0 or not, by the last digit of what ReLU gets."""
    x, w = normal(64, 256), normal(256, 32)
    b = torch.zeros(64, 32)
    b[3, 5] = (x @ w)[3, 5]  # exactly at the kink
    other = b.clone()
    other[3, 5] -= 2e-6
    eager, ours = trained(x, w, b), trained(x, w, other)

    def relu_gradient(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        w = w.detach().requires_grad_()
        (torch.relu(x @ w - b) > 0).to(x.dtype).mul(x @ w).sum().backward()
        assert w.grad is not None
        return w.grad

    mine, theirs = relu_gradient(x, w, other), relu_gradient(x, w, b)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(mine, theirs)
    for wide in (True, False):
        assert verdict(relu_gradient, [x, w, b], mine, wide).within
        assert verdict(relu_gradient, [x, w, b], mine * 1.01, wide).within is False
        swapped = mine.clone()
        swapped[:, [8, 9]] = mine[:, [9, 8]]
        assert verdict(relu_gradient, [x, w, b], swapped, wide).within is False
    assert verdict(trained, [x, w, b], ours).within
    assert eager[0][3, 5] == 0 != ours[0][3, 5]


def test_indices_of_numbers_that_differ_in_the_last_digit() -> None:
    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ w).argmax(-1)

    x, w = normal(256, 64), normal(64, 32)
    w[:, 7] = w[:, 3]  # equal, or as rounding makes them
    index = model(x, w)
    ours = torch.where(index == 3, 7, index)
    assert not torch.equal(ours, index)
    assert verdict(model, [x, w], ours).within is not False
    assert verdict(model, [x, w], (index + 1) % 32).within is False


def test_a_result_whose_shape_rounding_decides_is_unknown() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x[(x * 3) / 3 - x > 0]

    x = normal(1000)
    found = verdict(model, [x], model(x)[1:])
    assert found.within is None
    assert "shape" in found.undecided
    assert verdict(torch.relu, [x], x[1:]).within is False


def test_where_rounding_changes_all_nothing_is_known() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        for _ in range(80):
            x = 3.99 * x * (1 - x)
        return x

    x = torch.rand(512, generator=torch.Generator().manual_seed(0))
    found = verdict(model, [x], model(x + 1e-7))
    assert found.within is None
    assert found.undecided


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_wrong_constant_and_one_wrong_element(dtype: torch.dtype) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 1.5, -1) * 7 - x

    x = normal(32, 64, dtype=dtype)
    exact = model(x.double())
    assert verdict(model, [x], exact.to(dtype)).within
    factor = 1.01 if torch.finfo(dtype).bits > 16 else 1.25
    assert verdict(model, [x], (exact * factor).to(dtype)).within is False
    one = exact.clone()
    one[4, 7] += 0.5
    assert verdict(model, [x], one.to(dtype)).within is False


def test_what_eager_overflows_may_be_finite() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return (x * x) / x

    x = torch.linspace(100, 1000, 64).half()
    assert verdict(model, [x], x).within
    assert verdict(model, [x], x * 1.5).within is False
    assert verdict(torch.sqrt, [x], torch.where(x < 200, torch.nan, x.sqrt())).within is False


def test_results_of_other_kinds_are_wrong() -> None:
    x = normal(8)
    for ours in (x.double(), x.tolist(), (x, x), [1]):
        assert verdict(torch.clone, [x], ours).within is False


def test_perturbed_runs_leave_random_numbers_and_arguments_as_they_are() -> None:
    x = normal(64)
    before = x.clone()

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x.exp(), 0.5).add_(1)

    torch.manual_seed(0)
    eager = model(x)
    after = torch.get_rng_state()
    torch.manual_seed(0)
    with Perturbed(0):
        other = model(x)
    assert torch.equal(torch.get_rng_state(), after)
    assert torch.equal(x, before)
    assert torch.equal(other < 1.0001, eager == 1), "the same elements are dropped"
    assert 0 < (other - eager).abs().max() < 1e-4
    assert other.stride() == eager.stride()


def test_inputs_are_copied_as_they_are() -> None:
    x = normal(64)
    reference = Reference(torch.clone, Host(Recorder(TraceWriter(), SETTINGS), nullcontext))
    reference.remember()
    again = _Again(reference, InputSet((x,)), drew=False)
    assert all(torch.equal(again.perturbed(seed)["out"], x) for seed in range(4))


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
def test_a_model_in_bfloat16_is_wrong_only_beyond_rounding(tmp_path: Path, off: float) -> None:
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


BUFFER = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        self.seen += x * {factor} if torch.compiler.is_compiling() else x
        return x + 1

model = Net()
example_inputs = [(torch.ones(4),), (torch.ones(4),)]
"""


@pytest.mark.parametrize("factor", [1, 2])
def test_buffers_after_the_call_are_results(tmp_path: Path, factor: int) -> None:
    text = BUFFER.format(factor=factor)
    found = recorded(tmp_path, text, until="run", engine="tcw")
    (numerics,) = found.all(Numerics)
    assert numerics.compared == 4
    assert numerics.within is (factor == 1)
    if factor == 2:
        assert numerics.worst[0].path == "buffer seen after the call"
