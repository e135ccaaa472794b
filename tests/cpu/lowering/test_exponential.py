"""Roots, powers, exponentials, logarithms and error functions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import DTYPES, FLOATS, INTEGERS, check_each, corners, grid, pairs

pytestmark = pytest.mark.usefixtures("whole")

Unary = Callable[[torch.Tensor], torch.Tensor]

FUNCTIONS: dict[str, Unary] = {
    **{
        name: getattr(torch, name)
        for name in ("sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p")
    },
    **{name: getattr(torch, name) for name in ("sigmoid", "erf", "erfc", "sinc")},
    "entr": torch.special.entr,
    "ndtr": torch.special.ndtr,
    "softplus": torch.nn.functional.softplus,
    "softplus with a slope": lambda x: torch.nn.functional.softplus(x, 2.5, 4),
}
POWERS = (0, 1, 2, 3, 4, 0.5, -0.5, -1, -2, 2.5, 7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check_each(FUNCTIONS[name], ((corners(dtype),) for dtype in FLOATS))


def test_integers_become_floats() -> None:
    check_each(
        lambda x: (torch.exp(x), torch.sqrt(x), torch.sigmoid(x)),
        ((grid(dtype, 9),) for dtype in DTYPES),
    )


@pytest.mark.parametrize("exponent", POWERS)
def test_powers(exponent: float) -> None:
    """For float16, ATen computes a root by pow, which has other results for -inf and -0."""
    dtypes = [d for d in FLOATS if abs(exponent) != 0.5 or d is not torch.float16]
    check_each(lambda x: torch.pow(x, exponent), ((corners(d),) for d in dtypes))


@pytest.mark.parametrize("exponent", [0, 1, 2, 5])
def test_powers_of_integers(exponent: int) -> None:
    check_each(lambda x: x**exponent, ((corners(dtype),) for dtype in INTEGERS))


def test_powers_of_two_tensors() -> None:
    check_each(torch.pow, (pairs(dtype) for dtype in FLOATS))
    check_each(lambda x: (2**x, 1**x, 3.5**x), ((grid(dtype, 8),) for dtype in FLOATS))


def test_float_power_is_double() -> None:
    lowered(lambda x: (torch.float_power(x, 2), torch.float_power(x, x)), grid(torch.float32, 5))
    lowered(lambda x: torch.float_power(x, 3), torch.arange(5))


def test_integers_to_the_power_of_a_tensor() -> None:
    check_each(torch.pow, (pairs(dtype) for dtype in INTEGERS))
    check_each(lambda x: 3**x, ((torch.arange(9),),))


def test_products_with_logarithms() -> None:
    check_each(
        lambda x, y: (torch.xlogy(x, y), torch.special.xlog1py(x, y)),
        (pairs(dtype) for dtype in FLOATS),
    )
    check_each(
        lambda x: (torch.xlogy(x, 2.0), torch.xlogy(0.5, x)), ((corners(d),) for d in FLOATS)
    )


def test_logit() -> None:
    x = torch.tensor([0.0, 0.2, 0.5, 0.9, 1.0, 1.5, -1.0, float("nan")])
    check_each(lambda x: (torch.logit(x), torch.logit(x, 0.1)), ((x,), (x.double(),)))


def test_powers_of_two_scale() -> None:
    lowered(torch.ldexp, grid(torch.float32, 6), torch.tensor([0, 1, -3, 10, 126, -140]))
