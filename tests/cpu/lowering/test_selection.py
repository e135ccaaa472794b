"""Choosing: where, masks, clamps, replaced values."""

from __future__ import annotations

import pytest
import torch

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import DTYPES, FLOATS, NUMBERS, corners, grid, pairs

pytestmark = pytest.mark.usefixtures("whole")

NAN = float("nan")


def test_where() -> None:
    for dtype in DTYPES:
        x, y = pairs(dtype)
        lowered(lambda x, y: torch.where(x == y, x, y), x, y)
        lowered(lambda x: torch.where(x == x, x, 0), corners(dtype))


def test_where_promotes() -> None:
    x, y = grid(torch.float32, 3, 1), grid(torch.int64, 4)
    lowered(lambda x, y: (torch.where(x > 0, x, y), torch.where(y > 0, 1.5, y)), x, y)
    lowered(lambda x: torch.where(x > 0, 2.5, 1.5), x)


def test_masked_fill() -> None:
    for dtype in DTYPES:
        x, mask = grid(dtype, 3, 4), grid(torch.bool, 4)
        lowered(lambda x, m: (x.masked_fill(m, 1), x.masked_fill(m, x.sum().to(x.dtype))), x, mask)


def test_clamp_between_numbers() -> None:
    for dtype in NUMBERS:
        lowered(lambda x: (x.clamp(1, 3), x.clamp(min=2), x.clamp(max=2)), corners(dtype))


def test_clamp_and_nan() -> None:
    for dtype in FLOATS:
        x, y = pairs(dtype)
        lowered(lambda x: (x.clamp(NAN, 1), x.clamp(0.1, NAN), x.clamp(2, 1)), corners(dtype))
        lowered(
            lambda x, y: (torch.clamp(x, y, y + 1), torch.clamp(x, max=y), x.clamp_min(y)), x, y
        )


def test_clamp_promotes() -> None:
    lowered(lambda x: x.clamp(0.5, 2.5), torch.arange(5))


def test_nan_to_num() -> None:
    for dtype in DTYPES:
        lowered(lambda x: (x.nan_to_num(), x.nan_to_num(1.5, 2.5, -3.5)), corners(dtype))


def test_fill() -> None:
    lowered(lambda x: (torch.fill(x, 3), torch.fill(x, x.sum())), grid(torch.float32, 3))
