"""Reductions: every dtype, any dimensions, any memory order, and no elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import DTYPES, FLOATS, NUMBERS, check_each, corners, forms, grid

pytestmark = pytest.mark.usefixtures("whole")

Unary = Callable[[torch.Tensor], Any]

ANY: dict[str, Unary] = {
    "sum": torch.sum,
    "sum over dimensions": lambda x: x.sum((0, -1), keepdim=True),
    "sum in float64": lambda x: x.sum(1, dtype=torch.float64),
    "prod": torch.prod,
    "prod over a dimension": lambda x: x.prod(-1),
    "amax": lambda x: (x.amax(), x.amax(0), x.amax((0, 2), keepdim=True)),
    "amin": lambda x: (x.amin(), x.amin(-1), x.amin((1, 2))),
    "max": lambda x: (x.max(), x.max(1), x.max(-1, keepdim=True)),
    "min": lambda x: (x.min(), x.min(0)),
    "any": lambda x: (x.any(), x.any(1), torch.any(x, (0, 2))),
    "all": lambda x: (x.all(), x.all(1, keepdim=True), torch.all(x, (0, 2))),
    "count_nonzero": lambda x: (torch.count_nonzero(x), torch.count_nonzero(x, 1)),
    "nansum": lambda x: (torch.nansum(x), torch.nansum(x, 2)),
    "aminmax": lambda x: torch.aminmax(x, dim=1),
}
NUMERIC: dict[str, Unary] = {
    "argmax": lambda x: (x.argmax(), x.argmax(1), x.argmax(-1, keepdim=True)),
    "argmin": lambda x: (x.argmin(), x.argmin(0)),
}
FLOATING: dict[str, Unary] = {
    "mean": lambda x: (x.mean(), x.mean(1), x.mean((0, 2), keepdim=True)),
    "var": lambda x: (x.var(), x.var(1, correction=0), x.var((0, 2), correction=2, keepdim=True)),
    "std": lambda x: (x.std(), x.std(-1)),
    "var_mean": lambda x: torch.var_mean(x, (0, 1), correction=0),
    "logsumexp": lambda x: (torch.logsumexp(x, 1), torch.logsumexp(x, (0, 2), keepdim=True)),
    **{
        f"norm of order {order}": lambda x, order=order: torch.linalg.vector_norm(x, order, (0, 2))
        for order in (0, 0.5, 1, 2, 3, float("inf"), float("-inf"))
    },
}
NARROW = {"rtol": 2e-2, "atol": 2e-2}


@pytest.mark.parametrize("name", ANY)
def test_any_dtype(name: str) -> None:
    check_each(ANY[name], ((form,) for d in DTYPES for form in forms(grid(d, 3, 4, 5))))


@pytest.mark.parametrize("name", NUMERIC)
def test_numbers(name: str) -> None:
    check_each(NUMERIC[name], ((form,) for d in NUMBERS for form in forms(grid(d, 3, 4, 5))))


@pytest.mark.parametrize("name", FLOATING)
def test_floats(name: str) -> None:
    """For 16 bits, ATen rounds some sums that are kept in float32 here."""
    function = FLOATING[name]
    check_each(function, ((form,) for d in FLOATS[:2] for form in forms(grid(d, 3, 4, 5))))
    check_each(
        function, ((form,) for d in FLOATS[2:] for form in forms(grid(d, 3, 4, 5))), **NARROW
    )


def test_without_dimensions() -> None:
    lowered(lambda x: (x.sum(), x.sum(0), x.sum(-1, keepdim=True)), torch.tensor(2.5))
    lowered(lambda x: (x.max(), x.max(0), x.argmax(), x.argmin(0)), torch.tensor(2.5))
    lowered(lambda x: (x.mean(), x.mean(0), x.var(0, correction=0)), torch.tensor(2.5))
    lowered(lambda x: (x.any(), x.all(0), x.prod(), x.prod(0)), torch.tensor(2.5))
    lowered(lambda x: torch.logsumexp(x, 0), torch.tensor(2.5))


def test_nan_wins_extremes_and_is_their_index() -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[1.0, nan, 3.0, nan], [inf, 2.0, inf, -inf], [0.0, -0.0, 0.0, 0.0]])
    for dtype in FLOATS:
        lowered(
            lambda x: (x.amax(1), x.amin(1), x.max(1), x.min(1), x.argmax(1), x.argmin()),
            x.to(dtype),
        )


def test_the_first_of_equals_is_the_index() -> None:
    lowered(lambda x: (x.argmax(0), x.argmin(1), x.max(1)), torch.ones(4, 5))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    x = torch.zeros(shape)
    lowered(lambda x: (x.sum(), x.sum(0), x.prod(), x.any(), x.all(), x.mean(), x.mean(-1)), x)
    lowered(lambda x: (x.sum(-1), x.prod(0), x.nansum(), torch.linalg.vector_norm(x)), x)


def test_extremes_of_no_elements() -> None:
    lowered(lambda x: (x.amax(1), x.argmax(1)), torch.zeros(0, 3))


def test_variance_without_freedom() -> None:
    lowered(lambda x: (x.var(0), x.var(0, correction=3), x.std(0)), torch.ones(1, 3))


def test_infinite_rows() -> None:
    inf = float("inf")
    x = torch.tensor([[-inf, -inf], [inf, 1.0], [-inf, 0.0], [float("nan"), 0.0]])
    lowered(lambda x: torch.logsumexp(x, 1), x)


def test_integers_add_up_in_64_bits() -> None:
    for dtype in (torch.int32, torch.uint8, torch.bool):
        lowered(lambda x: (x.sum(), x.prod(), x.sum(0, dtype=torch.int32)), corners(dtype))


def test_a_sum_of_16_bits_is_taken_in_32() -> None:
    lowered(lambda x: (x.sum(), x.mean(), x.sum(0)), torch.full((4000, 2), 0.1).bfloat16())
