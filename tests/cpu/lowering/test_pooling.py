"""Maxima over windows of channels-last images."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, Dtype, grid


def image(dtype: Dtype = torch.float32, *shape: int) -> torch.Tensor:
    shape = shape or (2, 4, 7, 9)
    return grid(dtype, *shape).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(3, 2, 1), (2, 2, 0), (2, None, 1), ((3, 2), (1, 2), (1, 0)), (3, 1, 1)],
)
def test_maxima(dtype: Dtype, kernel: object, stride: object, padding: object) -> None:
    result = lowered(lambda x: functional.max_pool2d(x, kernel, stride, padding), image(dtype))
    assert result.kinds() == ["Map"]


def test_nan_and_infinity_win() -> None:
    x = image()
    x[0, 1, 3, 4], x[1, 2, 6, 8], x[1, 3] = float("nan"), float("inf"), float("-inf")
    lowered(lambda x: functional.max_pool2d(x, 3, 2, 1), x)


def test_of_a_value_in_another_order_it_reads_a_copy() -> None:
    lowered(lambda x: functional.max_pool2d(x * 2, 3, 2, 1), image())


def test_sizes_that_change() -> None:
    lowered(lambda x: functional.max_pool2d(x, 3, 2, 1), image(), dynamic=True)


@pytest.mark.parametrize(
    ("options", "x"),
    [
        ({"return_indices": True}, image()),
        ({}, image().contiguous()),
        ({"dilation": 2}, image()),
        ({"ceil_mode": True}, image()),
        ({}, image().requires_grad_()),
    ],
)
def test_what_stays_a_call(options: dict[str, object], x: torch.Tensor) -> None:
    result = lowered(lambda x: functional.max_pool2d(x, 3, 2, 1, **options), x, calls=None)
    assert "aten.max_pool2d_with_indices.default" in result.calls()
