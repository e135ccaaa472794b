"""Means over windows of images."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, Dtype, grid

BORDERS = [(3, 1), ((3, 2), (1, 0)), (5, (1, 2)), (2, 0)]
OTHERS = [dtype for dtype in FLOATS if dtype != torch.float32]


def image(dtype: Dtype = torch.float32, *shape: int) -> torch.Tensor:
    return grid(dtype, *(shape or (2, 4, 8, 9))).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", ["channels last", "contiguous", "one image"])
@pytest.mark.parametrize(("kernel", "stride"), [(2, None), (3, 2), ((2, 3), (2, 1)), (5, 1)])
def test_windows_inside_are_strided_views(
    dtype: Dtype, rows: str, kernel: object, stride: object
) -> None:
    x = image(dtype)
    x = {"channels last": x, "contiguous": x.contiguous(), "one image": x[0].contiguous()}[rows]
    result = lowered(lambda x: functional.avg_pool2d(x, kernel, stride), x)
    assert result.kinds() == ["Map"]


@pytest.mark.parametrize("included", [True, False])
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.long), 2, (3, 2)])
@pytest.mark.parametrize(("kernel", "padding"), BORDERS)
def test_windows_at_the_border(
    kernel: object, padding: object, stride: object, up: bool, included: bool
) -> None:
    at_the_border(torch.float32, kernel, stride, padding, up, included)


@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize(("kernel", "padding"), BORDERS)
def test_windows_at_the_border_in_other_dtypes(
    dtype: Dtype, kernel: object, padding: object
) -> None:
    at_the_border(dtype, kernel, 2, padding, True, False)


@pytest.mark.long
@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize("included", [True, False])
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("stride", [1, 2, (3, 2)])
@pytest.mark.parametrize(("kernel", "padding"), BORDERS)
def test_all_windows_at_the_border_in_other_dtypes(
    dtype: Dtype, kernel: object, padding: object, stride: object, up: bool, included: bool
) -> None:
    at_the_border(dtype, kernel, stride, padding, up, included)


def at_the_border(dtype: Dtype, *options: object) -> None:
    def pooled(x: torch.Tensor) -> torch.Tensor:
        return functional.avg_pool2d(x, *options)

    x = image(dtype, 2, 4, 7, 9)
    assert lowered(pooled, x).kinds() == ["Map"]
    assert lowered(pooled, x.contiguous()).kinds() == ["Map"]


def test_lines_and_volumes() -> None:
    lowered(lambda x: functional.avg_pool1d(x, 3, 2, 1), grid(torch.float32, 2, 3, 9))
    volume = grid(torch.float32, 2, 3, 5, 6, 7)
    for options in ((2,), (3, 2, 1), ((3, 1, 1), 1, (1, 0, 0)), (3, 2, 1, True, False)):
        lowered(lambda x, o=options: functional.avg_pool3d(x, *o), volume)


def test_pixels_beyond_the_border_count_as_zero_whatever_stands_at_it() -> None:
    x = image()
    x[0, 1, 0, 0], x[1, 2, 7, 8] = float("nan"), float("inf")
    lowered(lambda x: functional.avg_pool2d(x, 3, 1, 1), x)


def test_a_divisor_of_the_user() -> None:
    for padding in (0, 1):
        lowered(lambda x, p=padding: functional.avg_pool2d(x, 3, 1, p, divisor_override=5), image())


@pytest.mark.parametrize("padding", [0, 1])
def test_sizes_that_change(padding: int) -> None:
    lowered(lambda x: functional.avg_pool2d(x, 3, 1, padding), image(), dynamic=True)


@pytest.mark.parametrize("rows", ["channels last", "contiguous"])
def test_the_gradient_of_windows_side_by_side(rows: str) -> None:
    x = image(torch.float32, 2, 4, 6, 8)
    x = (x if rows == "channels last" else x.contiguous()).requires_grad_()
    lowered(lambda x: functional.avg_pool2d(x, (3, 2)) * 2, x)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [
        *((3, 1, 1), (3, 2, 1), ((2, 3), (1, 2), 0), (3, 3, 0), (3, 3, 1), (2, 3, 0)),
        (5, 2, (2, 1)),
    ],
)
def test_gradients_of_any_windows(kernel: object, stride: object, padding: object) -> None:
    """Those that overlap, that leave pixels out, and that lie over the border."""

    def pooled(x: torch.Tensor) -> torch.Tensor:
        return functional.avg_pool2d(x, kernel, stride, padding) * 2

    for dtype in (torch.float32, torch.float64):
        x = image(dtype, 2, 3, 9, 11)
        lowered(pooled, x.requires_grad_())
        lowered(pooled, x.detach().contiguous().requires_grad_())


def test_gradients_of_windows_of_a_volume() -> None:
    x = grid(torch.float32, 1, 2, 5, 6, 7).requires_grad_()
    lowered(lambda x: functional.avg_pool3d(x, (3, 2, 2), 1, (1, 0, 1)) * 2, x)
    lowered(lambda x: functional.local_response_norm(x[0], 3), x)


def test_large_windows_that_overlap_stay_a_call() -> None:
    result = lowered(lambda x: functional.avg_pool2d(x, 6, 1), image(), calls=None)
    assert result.calls() == ["aten.avg_pool2d.default"]


@pytest.mark.parametrize("options", [{"padding": 1}, {"divisor_override": 4}, {"ceil_mode": True}])
def test_integers_are_divided_toward_zero(options: dict[str, object]) -> None:
    x = torch.randint(-50, 50, (2, 3, 8, 7))
    lowered(lambda x: functional.avg_pool2d(x, 3, 2, **options), x)
    lowered(lambda x: functional.local_response_norm(x, 5), x)


@pytest.mark.parametrize("size", [(4, 3), (8, 9), (2, 9), (1, 3)])
def test_adaptive_windows_of_one_size(size: tuple[int, int]) -> None:
    def pooled(x: torch.Tensor) -> torch.Tensor:
        return functional.adaptive_avg_pool2d(x, size) * 2

    lowered(pooled, image())
    lowered(pooled, image().requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("rows", ["channels last", "contiguous"])
@pytest.mark.parametrize("size", [(3, 4), (5, 9), (8, 2), (11, 13)])
def test_adaptive_windows_of_several_sizes(
    size: tuple[int, int], rows: str, dtype: torch.dtype
) -> None:
    def pooled(x: torch.Tensor) -> torch.Tensor:
        return functional.adaptive_avg_pool2d(x, size) * 2

    x = image(dtype)
    x = x if rows == "channels last" else x.contiguous()
    lowered(pooled, x)
    if dtype != torch.bfloat16:  # whose gradients eager sums in 16 bits
        lowered(pooled, x.detach().clone().requires_grad_())


def test_a_dimension_that_keeps_its_size_is_not_pooled() -> None:
    x = torch.randn(2, 3, 23)
    found = lowered(lambda x: functional.adaptive_avg_pool1d(x, 5), x)
    assert found.kinds() == ["Map"]
    found = lowered(lambda x: functional.adaptive_avg_pool2d(x, (5, 23)), x.reshape(2, 1, 3, 23))
    assert found.kinds() == ["Map"]
    found = lowered(lambda x: functional.adaptive_avg_pool1d(x, 5), x.requires_grad_())
    assert found.kinds(1) == ["Map", "Map"], "the share of each window, and the sum of the shares"


def test_large_adaptive_windows_of_one_size() -> None:
    x = torch.randn(2, 3, 26, 24)
    lowered(lambda x: functional.adaptive_avg_pool2d(x, (2, 2)), x)
    lowered(lambda x: functional.adaptive_avg_pool2d(x, (2, 2)), x.mT.contiguous().mT)


def test_large_adaptive_windows_of_several_sizes_stay_a_call() -> None:
    x = torch.randn(1, 2, 64, 64)
    result = lowered(lambda x: functional.adaptive_avg_pool2d(x, 2 + 1), x[..., :63, :], calls=None)
    assert result.calls() == []
    result = lowered(lambda x: functional.adaptive_avg_pool2d(x, 1), x[..., :63, :], calls=None)
    assert result.calls() == []
    result = lowered(lambda x: functional.adaptive_avg_pool2d(x, (1, 3)), x, calls=None)
    assert result.calls() == ["aten._adaptive_avg_pool2d.default"]
