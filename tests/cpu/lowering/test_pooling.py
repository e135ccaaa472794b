"""Maxima over windows of images, in any memory order."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, Dtype, grid
from tests.long import mostly_long


def image(dtype: Dtype = torch.float32, *shape: int) -> torch.Tensor:
    shape = shape or (2, 4, 7, 9)
    return grid(dtype, *shape).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(3, 2, 1), (2, 2, 0), (2, None, 1), ((3, 2), (1, 2), (1, 0)), (3, 1, 1)],
)
def test_maxima(dtype: Dtype, kernel: object, stride: object, padding: object) -> None:
    x = image(dtype)
    for argument in (x, x.contiguous(), x[0].contiguous(), x.mT):
        result = lowered(lambda x: functional.max_pool2d(x, kernel, stride, padding), argument)
        assert "Map" in result.kinds()


@pytest.mark.parametrize("options", [{"dilation": 2}, {"ceil_mode": True}, {"dilation": (1, 3)}])
def test_gaps_and_windows_that_reach_beyond(options: dict[str, object]) -> None:
    for x in (image(), image().contiguous()):
        lowered(lambda x: functional.max_pool2d(x, 3, 2, 1, **options), x)


WINDOWS = [(3, 2, 1), (2, 2, 0), ((3, 2), (1, 2), (1, 0)), (3, 1, 1)]


@pytest.mark.parametrize(
    ("dtype", "kernel", "stride", "padding"),
    mostly_long(
        [(dtype, *window) for dtype in FLOATS for window in WINDOWS],
        [
            (torch.float32, *WINDOWS[0]),
            (torch.float32, *WINDOWS[2]),
            (torch.bfloat16, *WINDOWS[1]),
            (torch.float64, *WINDOWS[3]),
        ],
    ),
)
def test_indices_of_the_maxima(
    dtype: Dtype, kernel: object, stride: object, padding: object
) -> None:
    x = image(dtype)
    x[0, 1, 3, 4], x[0, 1, 3, 5], x[1, 2, 6, 8] = float("nan"), float("nan"), float("inf")
    x[1, 3], x[0, 0, 2:5] = float("-inf"), 7
    for argument in (x, x.contiguous(), x[0].contiguous(), x.mT):
        result = lowered(
            lambda x: functional.max_pool2d(x, kernel, stride, padding, return_indices=True),
            argument,
        )
        assert "Call" not in result.kinds()


def test_indices_in_other_windows() -> None:
    x = image().contiguous()
    lowered(lambda x: functional.max_pool2d(x, 3, 2, 1, 1, True, return_indices=True), x)
    lowered(lambda x: functional.max_pool2d(x, 3, 2, 0, 2, return_indices=True), x)
    gaps = lowered(
        lambda x: functional.max_pool2d(x, 3, 2, 1, 2, return_indices=True), x, calls=None
    )
    assert gaps.calls() == ["aten.max_pool2d_with_indices.default"]
    lowered(lambda x: functional.max_pool1d(x[0], 3, 2, return_indices=True), x)
    volume = grid(torch.float32, 2, 3, 5, 6, 7)
    lowered(lambda x: functional.max_pool3d(x, 2, return_indices=True), volume)


def test_indices_alone() -> None:
    for rank, x in ((2, image().contiguous()), (3, grid(torch.float32, 2, 3, 5, 6, 7))):
        pools = (
            getattr(functional, f"max_pool{rank}d"),
            getattr(functional, f"adaptive_max_pool{rank}d"),
        )
        for pool, size in zip(pools, (2, 3), strict=True):
            result = lowered(lambda x, p=pool, s=size: p(x, s, return_indices=True)[1], x)
            assert "Call" not in result.kinds()


def test_volumes_and_integers() -> None:
    volume = grid(torch.float32, 2, 3, 5, 6, 7)
    lowered(lambda x: functional.max_pool3d(x, (1, 3, 2), 2, (0, 1, 1)), volume)
    whole = torch.arange(-60, 60).view(1, 2, 6, 10)
    lowered(lambda x: functional.max_pool2d(x, 3, 2, 1), whole)


def test_nan_and_infinity_win() -> None:
    x = image()
    x[0, 1, 3, 4], x[1, 2, 6, 8], x[1, 3] = float("nan"), float("inf"), float("-inf")
    for argument in (x, x.contiguous()):
        lowered(lambda x: functional.max_pool2d(x, 3, 2, 1), argument)


def test_a_value_is_fused_into_windows_without_a_border() -> None:
    result = lowered(lambda x: functional.max_pool2d(x * 2, 2), image().contiguous()[..., :6, :8])
    assert result.kinds() == ["Map", "Map"]


def test_of_a_value_in_another_order_it_reads_a_copy() -> None:
    lowered(lambda x: functional.max_pool2d(x * 2, 3, 2, 1), image())


def test_sizes_that_change() -> None:
    for x in (image(), image().contiguous()):
        lowered(lambda x: functional.max_pool2d(x, 3, 2, 1), x, dynamic=True)


@pytest.mark.parametrize(
    ("options", "x"),
    [
        ({"return_indices": True}, image(torch.float32, 2, 16, 7, 9)),
        ({"kernel_size": 6}, image()),
        ({}, image(torch.float32, 2, 16, 7, 9).requires_grad_()),
    ],
)
def test_what_stays_a_call(options: dict[str, object], x: torch.Tensor) -> None:
    options = {"kernel_size": 3, "stride": 2, "padding": 1, **options}
    result = lowered(lambda x: functional.max_pool2d(x, **options), x, calls=None)
    assert "aten.max_pool2d_with_indices.default" in result.calls()
