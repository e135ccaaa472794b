"""Sums, products, quotients, remainders: the extremes of every dtype, as in eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.cpu.lowering.harness import lowered
from tests.cpu.lowering.samples import (
    DTYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    check_each,
    corners,
    forms,
    grid,
    pairs,
)

pytestmark = pytest.mark.usefixtures("whole")

Binary = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Unary = Callable[[torch.Tensor], torch.Tensor]

ANY: dict[str, Binary] = {
    "add": torch.add,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "copysign": torch.copysign,
    "true division": torch.div,
    "heaviside": torch.heaviside,
}
NUMERIC: dict[str, Binary] = {
    "sub": torch.sub,
    "rsub": torch.rsub,
    "alpha": lambda x, y: torch.add(x, y, alpha=3),
    "minus alpha": lambda x, y: torch.sub(x, y, alpha=3),
    "addcmul": lambda x, y: torch.addcmul(x, y, x, value=2),
}
DIVISIONS: dict[str, Binary] = {
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
}
FLOATING: dict[str, Binary] = {
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x, value=0.5),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp from the end": lambda x, y: torch.lerp(x, y, 0.8),
    "lerp by a tensor": lambda x, y: torch.lerp(x, y, torch.full_like(y, 0.25)),
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
}
UNARY: dict[str, Unary] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "reciprocal": torch.reciprocal,
    "square": torch.square,
    "sign": torch.sign,
    "sgn": torch.sgn,
    "deg2rad": torch.deg2rad,
    "rad2deg": torch.rad2deg,
    "positive": torch.positive,
}
SCALARS: dict[str, Unary] = {
    "add": lambda x: x + 0.1,
    "reversed sub": lambda x: 1 - x,
    "mul": lambda x: x * 2,
    "by a power of two": lambda x: x / 8,
    "by three": lambda x: x / 3,
    "reversed division": lambda x: 1 / x,
    "floor": lambda x: x // 3,
    "remainder": lambda x: x % 3,
    "fmod": lambda x: torch.fmod(x, 3),
    "copysign": lambda x: torch.copysign(x, -1.0),
}


def with_signs(result: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The result, and its reciprocal, which distinguishes zeros of different signs."""
    return result, 1 / result.double()


@pytest.mark.parametrize("name", ANY)
def test_operations_of_any_dtype(name: str) -> None:
    check_each(ANY[name], (pairs(dtype) for dtype in DTYPES))


@pytest.mark.parametrize("name", NUMERIC)
def test_operations_of_numbers(name: str) -> None:
    check_each(NUMERIC[name], ((grid(dtype, 5, 1), grid(dtype, 7)) for dtype in NUMBERS))


@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_that_round(name: str) -> None:
    """ATen rounds a quotient to 16 bits before taking the integer part: results may differ by 1."""
    wide = [dtype for dtype in NUMBERS if dtype.itemsize != 2]
    check_each(DIVISIONS[name], ((grid(d, 20, 1), grid(d, 6).abs() + 1) for d in wide))
    check_each(DIVISIONS[name], ((grid(d, 20, 1), -grid(d, 6).abs() - 1) for d in wide))


@pytest.mark.parametrize("name", FLOATING)
def test_operations_of_floats(name: str) -> None:
    check_each(FLOATING[name], ((grid(dtype, 4, 5), grid(dtype, 5)) for dtype in FLOATS))


@pytest.mark.parametrize("name", UNARY)
def test_operations_of_one_operand(name: str) -> None:
    check_each(UNARY[name], ((corners(dtype),) for dtype in NUMBERS))


@pytest.mark.parametrize("name", SCALARS)
def test_operations_with_numbers(name: str) -> None:
    check_each(SCALARS[name], ((grid(dtype, 7).abs() + 1,) for dtype in NUMBERS))


def test_signs_of_zeros() -> None:
    check_each(
        lambda x, y: [with_signs(f(x, y)) for f in (torch.add, torch.mul, torch.copysign)],
        (pairs(dtype) for dtype in (torch.float32, torch.float64)),
    )
    check_each(lambda x: with_signs(torch.neg(x)), ((corners(dtype),) for dtype in FLOATS))


def test_operands_of_two_dtypes() -> None:
    check_each(
        lambda x, y: (x + y, x * y, x / (y + 2), x + y.sum(), torch.maximum(x, y)),
        ((grid(x, 3, 1), grid(y, 4)) for x in DTYPES for y in DTYPES),
    )


def test_integers_are_rounded_to_the_16_bits_they_meet() -> None:
    x, y = grid(torch.float16, 3, 1), torch.tensor([2049, 70000, -(1 << 40)])
    lowered(lambda x, y: (x + y, x * y, torch.minimum(x, y)), x, y)


def test_memory_orders_and_sizes() -> None:
    for x in forms(grid(torch.float32, 3, 4, 5)):
        lowered(lambda x, y: (x + y, x * x, y - x), x, grid(torch.float32, 4, 1))
    lowered(lambda x: x + 1, torch.zeros(0, 3))
    lowered(lambda x, y: x * y + x, torch.tensor(2.0), torch.tensor(3.0))


@pytest.mark.parametrize("name", DIVISIONS)
def test_integer_division_by_zero_raises(name: str) -> None:
    for dtype in INTEGERS:
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            lowered(DIVISIONS[name], torch.ones(2, dtype=dtype), torch.zeros(2, dtype=dtype))


def test_logic_of_bool() -> None:
    lowered(lambda x, y: (x + y, x * y, x & y, x | y, x ^ y, ~x), *pairs(torch.bool))
