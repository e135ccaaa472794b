"""Special functions, orthogonal polynomials and common divisors, as eager computes them."""

from __future__ import annotations

import pytest
import torch

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import FLOATS, INTEGERS, check_each, corners, pairs

pytestmark = pytest.mark.usefixtures("whole")

UNARY = ("digamma", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e", "ndtri")
WIDE = (
    *("modified_bessel_k0", "modified_bessel_k1"),
    *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
    *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0", "airy_ai"),
)
"""Of float32 and float64 alone."""
POLYNOMIALS = (
    *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he"),
    *("laguerre_polynomial_l", "legendre_polynomial_p"),
)


def edges(dtype: torch.dtype) -> torch.Tensor:
    """The corners but those at which the functions are no numbers of the dtype."""
    x = corners(dtype)
    return x[x.abs() != torch.finfo(dtype).max]


def reach(dtype: torch.dtype) -> torch.Tensor:
    """Both signs, small and large, on both sides of where the series change."""
    x = torch.cat([torch.linspace(-0.99, 0.99, 67), torch.linspace(-31, 43, 149), torch.arange(30)])
    return x.to(dtype)


@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str) -> None:
    function = getattr(torch.special, name)
    dtypes = FLOATS if name in ("digamma", "erfinv", "i0") else FLOATS[:2]
    check_each(function, ((edges(dtype),) for dtype in dtypes))
    check_each(function, ((reach(dtype),) for dtype in dtypes))


@pytest.mark.parametrize("name", WIDE)
def test_functions_of_wide_floats(name: str) -> None:
    function = getattr(torch.special, name)
    check_each(function, ((edges(dtype),) for dtype in FLOATS[:2]))
    x = reach(torch.float64)
    check_each(function, ((x,), (x.float(),)))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 6])
def test_derivatives_of_the_gamma_function(order: int) -> None:
    """Of 16 bits eager rounds what it multiplies for the higher orders."""
    x = torch.linspace(0.1, 12, 50)
    dtypes = FLOATS if order < 2 else FLOATS[:2]
    check_each(lambda x: torch.polygamma(order, x), ((x.to(dtype),) for dtype in dtypes))


def test_incomplete_gamma_functions() -> None:
    a = torch.tensor([0.0, 0.3, 1.0, 2.5, 19.0, 30.0, 150.0, 300.0])[:, None]
    x = torch.tensor([0.0, 0.2, 0.8, 1.05, 3.0, 28.0, 160.0, 310.0, float("inf"), -1.0])
    check_each(
        lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)),
        ((a.to(dtype), x.to(dtype)) for dtype in (torch.float32, torch.float64, torch.bfloat16)),
    )


def test_zeta() -> None:
    x, q = torch.linspace(0.5, 9, 18)[:, None], torch.linspace(-4.25, 20, 19)
    check_each(torch.special.zeta, ((x, q), (x.double(), q.double())))
    check_each(lambda x: (torch.special.zeta(x, 2.0), torch.special.zeta(3.0, x)), ((x + 1,),))


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    x = torch.tensor([-3.0, -1.0, -0.6, -0.2, 0.0, 0.3, 0.5, 0.8, 1.0, 2.5])[:, None]
    degree = torch.tensor([-1.0, 0.0, 1.0, 2.0, 3.5, 5.0, 7.0, 9.0, 12.0])
    function = getattr(torch.special, name)
    check_each(function, ((x, degree), (x.double(), degree.double())))
    check_each(lambda x: function(x, 3), ((x,),))


def test_integers_become_floats() -> None:
    x = torch.arange(-4, 9)
    check_each(lambda x: (torch.digamma(x), torch.special.i0(x), torch.erfinv(x)), ((x,),))


def test_common_divisors() -> None:
    check_each(lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)), _whole_pairs())
    lowered(torch.gcd, torch.arange(40, dtype=torch.int8), torch.arange(40, dtype=torch.int16) - 9)


def _whole_pairs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    grids = []
    for dtype in INTEGERS:
        x, y = pairs(dtype)
        least = torch.iinfo(dtype).min
        if least:  # its magnitude is no number of the dtype
            x, y = x[x[:, 0] != least], y[:, y[0] != least]
        grids.append((x, y))
    return grids
