"""Bitwise operations, and shifts by any count."""

from __future__ import annotations

import pytest
import torch

from tests.cpu.lowering.samples import INTEGERS, check_each, corners, pairs

pytestmark = pytest.mark.usefixtures("whole")

INTEGRAL = (*INTEGERS, torch.int16, torch.int8)


def test_bits() -> None:
    integral = (*INTEGRAL, torch.bool)
    check_each(lambda x, y: (x & y, x | y, x ^ y, ~x), (pairs(dtype) for dtype in integral))
    check_each(lambda x: (x & 1, x | 1, 1 ^ x), ((corners(dtype),) for dtype in integral))


def test_shifts_by_tensors() -> None:
    check_each(
        lambda x, y: (torch.bitwise_left_shift(x, y), torch.bitwise_right_shift(x, y)),
        (pairs(dtype) for dtype in INTEGRAL),
    )


@pytest.mark.parametrize("count", [0, 3, 7, 8, 31, 64])
def test_shifts_by_numbers(count: int) -> None:
    check_each(
        lambda x: (torch.bitwise_left_shift(x, count), torch.bitwise_right_shift(x, count)),
        ((corners(dtype),) for dtype in INTEGRAL),
    )
