"""Special functions against ATen's, whose series they are, in float32 and float64."""

from __future__ import annotations

import pytest
import torch

from compiler.codegen.cpp.vocabulary.special_functions import BINARY, UNARY
from compiler.loops.interpreter.operators import FUNCTIONS
from tests.cpu.codegen.units import NAMES, WIDTHS, Unit, elementwise

DTYPES = {"float32": torch.float32, "float64": torch.float64}
TIGHT = {"erfinv": 2e-7, "digamma": 2e-6, "trigamma": 2e-6, "i0": 2e-6, "i0e": 2e-6}
"""Relative errors of float32. ATen's polynomials round differently where terms cancel."""


def eager(op: str, *operands: torch.Tensor) -> torch.Tensor:
    function = FUNCTIONS.get(op) or getattr(torch.special, op)
    answer: torch.Tensor = function(*operands)
    return answer


def points(dtype: torch.dtype) -> torch.Tensor:
    """Small and large, of both signs, and the edges; a whole number of vectors."""
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 5.0, 8.0, 10.0, 1e-6, 0.7, float("inf")]
    edges += [-float("inf"), float("nan"), 0.135, 0.865, 1e-30, 1 - 1e-7, -3.0, 2.09, -2.1]
    ranges = [torch.linspace(-0.999, 0.999, 203), torch.linspace(-25, 60, 317)]
    x = torch.cat([*(part.double() for part in ranges), torch.tensor(edges, dtype=torch.float64)])
    return torch.cat([x, torch.ones(-x.numel() % 16)]).to(dtype)


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.tensor([-2.5, -1, -0.6, -0.1, 0, 0.25, 0.5, 0.9, 1, 1.5, 3, float("nan")])
    y = torch.tensor([-3.5, -1, 0, 1, 2, 3.5, 4, 6, 7, 9, 11, 20, 130, 600, 0.5, float("inf")])
    a, b = (side.to(dtype).clone() for side in torch.cartesian_prod(x, y).unbind(1))
    return a, b


def shapes_and_limits(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Arguments of the incomplete gamma functions, on both sides of where the method changes."""
    a = torch.tensor([-1, 0, 1e-3, 0.3, 0.7, 1, 1.6, 4, 19, 25, 90, 150, 210, 600, 5000, torch.inf])
    x = torch.tensor(
        [-1, 0, 1e-3, 0.4, 0.6, 1.05, 1.5, 5, 20, 26, 80, 160, 200, 610, 5050, torch.inf]
    )
    first, second = (side.to(dtype).clone() for side in torch.cartesian_prod(a, x).unbind(1))
    return first, second


@pytest.mark.parametrize(("isa", "lanes"), WIDTHS, ids=NAMES)
def test_special_functions(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    held = [name for name in DTYPES if name == "float32" or lanes * 8 <= max(isa.vector_bytes, 8)]
    floats = [op for op in (*UNARY, *BINARY) if op != "gcd"]
    arity = {op: 1 if op in UNARY else 2 for op in floats}
    numbers = {
        (op, dtype): elementwise(unit, op, [dtype] * arity[op], dtype, dtype)
        for op in floats
        for dtype in held
    }
    unit.build()
    failures = []
    for (op, dtype), number in numbers.items():
        operands = (points(DTYPES[dtype]),) if arity[op] == 1 else pairs(DTYPES[dtype])
        if op.startswith("igamma"):
            operands = shapes_and_limits(DTYPES[dtype])
        out = torch.empty_like(operands[0])
        unit.run(number, [*operands, out], out.numel())
        rtol = TIGHT.get(op, 2e-5 if op in UNARY else 1e-4) if dtype == "float32" else 1e-9
        try:
            torch.testing.assert_close(
                out, eager(op, *operands), rtol=rtol, atol=1e-6, equal_nan=True
            )
        except AssertionError as error:
            failures.append(f"{op} of {dtype}: {error}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_greatest_common_divisors(dtype: str) -> None:
    isa, lanes = WIDTHS[1]
    unit = Unit(isa, lanes)
    number = elementwise(unit, "gcd", [dtype, dtype], dtype, dtype)
    unit.build()
    low = 0 if dtype == "uint8" else -16
    whole = torch.arange(low, low + 32).to(getattr(torch, dtype))
    a, b = (side.clone() for side in torch.cartesian_prod(whole, whole).unbind(1))
    out = torch.empty_like(a)
    unit.run(number, [a, b, out], a.numel())
    torch.testing.assert_close(out, torch.gcd(a, b), rtol=0, atol=0)
