"""Windows of images as columns."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, Dtype, grid

OPTIONS: list[dict[str, Any]] = [
    {"kernel_size": 3},
    {"kernel_size": (2, 3), "stride": (3, 2)},
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": (3, 2), "padding": (0, 2), "stride": 2, "dilation": (1, 3)},
    {"kernel_size": 7, "padding": 3, "stride": 4},
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_columns(options: dict[str, Any], dtype: Dtype) -> None:
    x = grid(dtype, 2, 3, 8, 9)
    for image in (x, x[0], x.mT, x.to(memory_format=torch.channels_last)):
        lowered(lambda x: functional.unfold(x, **options), image)


def test_beyond_the_border_are_zeros_whatever_stands_at_it() -> None:
    x = grid(torch.float32, 1, 2, 4, 5)
    x[0, 0, 0], x[0, 1, :, 4] = float("nan"), float("inf")
    lowered(lambda x: functional.unfold(x, 3, padding=1), x)


def test_a_value_is_fused_into_windows_without_a_border() -> None:
    x = grid(torch.float32, 2, 3, 8, 8)
    lowered(lambda x: functional.unfold(x * 2, 2, stride=2) + 1, x)


def test_sizes_that_change_and_gradients() -> None:
    x = grid(torch.float32, 2, 3, 8, 9)
    lowered(lambda x: functional.unfold(x, 3, padding=1), x, dynamic=True)
    x = grid(torch.float32, 2, 3, 8, 9).requires_grad_()
    lowered(lambda x: functional.unfold(x, 3, padding=1) * 2, x, dynamic=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", [*OPTIONS[:3], {"kernel_size": 3, "dilation": (1, 2)}], ids=str)
def test_columns_are_summed_into_images(options: dict[str, Any], dtype: Dtype) -> None:
    # eager adds 16-bit floats in 16 bits
    close = {} if dtype.itemsize > 2 else {"atol": 0.05, "rtol": 0.02}
    x = grid(dtype, 2, 3, 8, 9)
    for image in (x, x[0], x.to(memory_format=torch.channels_last)):
        image = image.detach().requires_grad_()
        lowered(lambda x: functional.unfold(x, **options) * 2, image, **close)
    columns = functional.unfold(x, **options)
    for given in (columns, columns[0], columns.mT.contiguous().mT):
        lowered(lambda x: functional.fold(x, (8, 9), **options), given, **close)


def test_columns_with_steps_and_gaps_are_summed_by_aten() -> None:
    columns = functional.unfold(grid(torch.float32, 2, 3, 8, 9), **OPTIONS[3])
    lowered(lambda x: functional.fold(x, (8, 9), **OPTIONS[3]), columns, calls=["col2im"])


@pytest.mark.parametrize(("dim", "size", "step"), [(1, 3, 1), (-1, 4, 2), (0, 2, 3), (1, 5, 2)])
def test_the_gradient_of_windows_sums_their_elements(dim: int, size: int, step: int) -> None:
    for dtype in FLOATS:
        x = grid(dtype, 6, 9, 8)
        # eager adds 16-bit floats in 16 bits
        close = {} if dtype.itemsize > 2 else {"atol": 0.05, "rtol": 0.02}
        for tensor in (x, x.mT.contiguous().mT):
            tensor = tensor.requires_grad_()
            lowered(lambda x: x.unfold(dim, size, step) * 2, tensor, **close)
            lowered(lambda x: x.unfold(dim, size, step).sum(-1), tensor, **close)


def test_the_gradient_of_windows_of_no_elements_is_zero() -> None:
    x = grid(torch.float32, 9).requires_grad_()
    lowered(lambda x: x.unfold(0, 0, 2) * 2, x)
