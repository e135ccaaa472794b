"""Comparisons and logic, in the dtype to which the operands promote."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import DTYPES, NUMBERS, check_each, corners, pairs

pytestmark = pytest.mark.usefixtures("whole")

COMPARISONS = (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)
LOGIC = (torch.logical_and, torch.logical_or, torch.logical_xor)
TESTS = (
    *(torch.isnan, torch.isinf, torch.isfinite, torch.isposinf, torch.isneginf),
    *(torch.signbit, torch.logical_not, torch.isreal),
)


def test_two_tensors() -> None:
    check_each(
        lambda x, y: [f(x, y) for f in (*COMPARISONS, *LOGIC)],
        (pairs(x, y) for x in DTYPES for y in DTYPES),
    )


@pytest.mark.parametrize("number", [0, 1, 0.1, 0.3, 2.5, float("nan"), float("-inf")])
def test_a_tensor_and_a_number(number: float) -> None:
    """0.3 in bfloat16 equals the number 0.3 rounded to bfloat16, and neither neighbour."""
    check_each(lambda x: [f(x, number) for f in COMPARISONS], ((corners(d),) for d in NUMBERS))


@pytest.mark.parametrize("function", TESTS)
def test_one_tensor(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    check_each(function, ((corners(dtype),) for dtype in DTYPES))


def test_tensors_without_dimensions_yield() -> None:
    """A zero-dimensional float64 is compared as the float32 of the other operand."""
    x = torch.tensor([0.1, 0.2], dtype=torch.float32)
    lowered(lambda x, y: (x == y, x < y), x, torch.tensor(0.1, dtype=torch.float64))
    lowered(lambda x, y: (x == y, x < y), torch.arange(3), torch.tensor(1.5))


def test_isclose() -> None:
    lowered(
        lambda x, y: (torch.isclose(x, y), torch.isclose(x, y, equal_nan=True)),
        *pairs(torch.float32),
    )
