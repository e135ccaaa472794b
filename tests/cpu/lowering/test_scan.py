"""Running sums, products and extremes."""

from __future__ import annotations

import pytest
import torch

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import DTYPES, FLOATS, check_each, forms, grid

pytestmark = pytest.mark.usefixtures("whole")


@pytest.mark.parametrize("function", [torch.cumsum, torch.cumprod])
def test_totals(function: object) -> None:
    check_each(
        lambda x: [function(x, dim) for dim in (0, 1, -1)],  # type: ignore[operator]
        ((form,) for d in DTYPES for form in forms(grid(d, 3, 4, 5))),
    )


def test_in_another_dtype() -> None:
    lowered(lambda x: (x.cumsum(0, dtype=torch.float32), x.cumprod(0)), torch.arange(1, 6))
    lowered(lambda x: x.cumsum(0, dtype=torch.float64), grid(torch.bfloat16, 5))


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin])
def test_extremes_and_the_last_index_of_equals(function: object) -> None:
    check_each(
        lambda x: [function(x, dim) for dim in (0, -1)],  # type: ignore[operator]
        ((form,) for d in DTYPES for form in forms(grid(d, 3, 7))),
    )


def test_nan_stays_the_extreme() -> None:
    nan = float("nan")
    x = torch.tensor([1.0, 3.0, nan, 5.0, nan, 2.0])
    check_each(lambda x: (x.cummax(0), x.cummin(0)), ((x.to(d),) for d in FLOATS))


def test_sizes() -> None:
    lowered(lambda x: x.cumsum(0), torch.tensor(3.0))
    lowered(lambda x: (x.cumsum(1), x.cumprod(0)), torch.zeros(3, 0))


def test_a_reversed_total() -> None:
    lowered(lambda x: x.flip(1).cumsum(1).flip(1), grid(torch.float32, 3, 6))


def test_a_long_total_is_as_exact_as_eager() -> None:
    lowered(lambda x: x.cumsum(0), torch.rand(20000, generator=torch.Generator().manual_seed(1)))
