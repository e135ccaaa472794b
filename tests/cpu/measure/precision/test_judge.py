"""Accepted and rejected errors of one result."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.measure.precision.evaluate import Evaluator
from tcw.compiler.measure.precision.judge import Verdict, judge
from tcw.compiler.measure.precision.verify import compared_values


def judged(function: Any, inputs: list[Any], ours: Any) -> list[Verdict]:
    """Compare results `ours` with the nodes of a function, on these inputs."""
    module: fx.GraphModule = make_fx(function, tracing_mode="fake")(*inputs)
    evaluator = Evaluator(module)
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    known = dict(zip(given, inputs, strict=True))
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    targets = list(output.args[0]) if isinstance(output.args[0], tuple) else [output.args[0]]
    order, _ = evaluator.needed(targets, known)
    results = list(ours) if isinstance(ours, tuple) else [ours]
    wanted = dict(zip(targets, results, strict=True))
    values = compared_values(evaluator, order, known, wanted)
    return [judge(value) for value in values.values()]


def verdict(function: Any, inputs: list[Any], ours: Any) -> bool | None:
    verdicts = [one.within for one in judged(function, inputs, ours)]
    return False if False in verdicts else verdicts[0]


DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def scaled(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x * 1.702) * x


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_rounding_at_the_end_is_as_good_as_one_after_each_operation(dtype: torch.dtype) -> None:
    x = normal(64, 96, dtype=dtype)
    assert verdict(scaled, [x], scaled(x)) is True
    assert verdict(scaled, [x], scaled(x.double()).to(dtype)) is True


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_that_differs_in_the_third_digit_is_wrong(dtype: torch.dtype) -> None:
    x = normal(64, 96, dtype=dtype)
    assert verdict(lambda x: x * 1.702, [x], (x.double() * 1.712).to(dtype)) is False
    assert verdict(lambda x: x.cos() + 1.702, [x], (x.double().cos() + 1.712).to(dtype)) is False


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tail_that_was_left_out_is_wrong(dtype: torch.dtype) -> None:
    x = normal(8, 33, dtype=dtype)
    ours = scaled(x)
    ours[-1, -1] += 1
    assert verdict(scaled, [x], ours) is False


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_axis_and_a_missed_step_are_wrong(dtype: torch.dtype) -> None:
    x, bias = normal(32, 32, dtype=dtype), normal(32, dtype=dtype)
    assert verdict(lambda x: x.softmax(-1), [x], x.softmax(0)) is False
    assert verdict(lambda x, b: torch.relu(x + b), [x, bias], x + bias) is False
    assert verdict(lambda x, b: torch.relu(x + b), [x, bias], torch.relu(x)) is False


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("count", [1 << 6, 1 << 16])
def test_any_order_of_a_sum_is_right(dtype: torch.dtype, count: int) -> None:
    x = normal(count, dtype=dtype).abs()
    naive = x.to(torch.float32).cumsum(0)[-1].to(dtype)
    assert verdict(lambda x: x.sum(0), [x], naive) is True
    missing = x.double().sum() * 0.95
    assert verdict(lambda x: x.sum(0), [x], missing.to(dtype)) is False


def test_a_difference_of_large_numbers_may_lose_digits() -> None:
    x = normal(64, 64) + 1000
    fused = (x.double() - x.double().mean(-1, keepdim=True)).float()
    shifted = x - (x.sum(-1, keepdim=True) * (1 / 64))
    assert verdict(lambda x: x - x.mean(-1, keepdim=True), [x], fused) is True
    assert verdict(lambda x: x - x.mean(-1, keepdim=True), [x], shifted) is True
    assert verdict(lambda x: x - x.mean(-1, keepdim=True), [x], shifted + 0.01) is False


def test_numbers_that_are_all_alike_are_rounded_alike() -> None:
    x = torch.full((64, 64), 0.3, dtype=torch.bfloat16)
    fused = (x.double() * 0.7 * 1.3).to(torch.bfloat16)
    assert verdict(lambda x: x * 0.7 * 1.3, [x], fused) is True


def test_whole_numbers_are_exact_where_rounding_does_not_decide() -> None:
    x = normal(16, 32)
    index = x.argmax(-1)
    assert verdict(lambda x: x.argmax(-1), [x], index) is True
    assert verdict(lambda x: x.argmax(-1), [x], (index + 1) % 32) is False
    sums = x.sum(-1, keepdim=True) * 0
    near = (x * 1e-9).sum(-1, keepdim=True) > 0
    assert verdict(lambda x: (x * 1e-9).sum(-1, keepdim=True) > 0, [x], near) is True
    assert verdict(lambda x: (x - x.mean(-1, keepdim=True)).sum(-1) > 0, [x], sums[:, 0] > 1) in (
        True,
        None,
    )


def test_masks_by_what_is_computed_may_turn_where_rounding_decides() -> None:
    x = normal(256, 256)
    third = (x * 3) / 3 - x  # 0, or what rounding makes of it

    def mask(x: torch.Tensor) -> torch.Tensor:
        return torch.where((x * 3) / 3 - x > 0, x, -x)

    assert verdict(mask, [x], torch.where(third >= 0, x, -x)) is not False


def test_infinities_and_not_a_number() -> None:
    x = torch.tensor([-1.0, 0.0, 1.0, 4.0]).repeat(16)
    assert verdict(torch.log, [x], torch.log(x)) is True
    (found,) = judged(torch.sqrt, [x.abs()], x.sqrt())
    assert found.within is False
    assert found.note == "nan in compiled only"
    big = torch.full((64,), 60000.0, dtype=torch.float16)
    assert verdict(lambda x: x * 2, [big], big * 2) is True


def test_nothing_but_zeros() -> None:
    x = torch.zeros(64)
    assert verdict(lambda x: x * 2, [x], x) is True
    assert verdict(lambda x: x * 2, [x], x + 1e-20) is False
    assert verdict(lambda x: x * 2, [torch.zeros(0)], torch.zeros(0)) is True


def test_another_shape_is_wrong() -> None:
    x = normal(4, 8)
    assert verdict(lambda x: x * 2, [x], (x * 2).T) is False


def test_complex_numbers() -> None:
    x = torch.view_as_complex(normal(64, 2))
    assert verdict(lambda x: x * 2.5, [x], x * 2.5) is True
    assert verdict(lambda x: x * 2.5, [x], x * 2.51) is False
