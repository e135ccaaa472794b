"""Special functions against ATen's, whose series they are, in float32 and float64."""

from __future__ import annotations

import pytest
import torch

from tcw.compiler.codegen.cpp.vocabulary.special_functions import UNARY
from tcw.compiler.loops.interpreter.operators import apply
from tests.cpu.codegen.units import WIDTHS, Unit, each_width, elementwise

DTYPES = {"float32": torch.float32, "float64": torch.float64}
TIGHT = {"digamma": 2e-6}
"""Relative errors of float32. ATen's polynomials round differently where terms cancel."""


def points(dtype: torch.dtype) -> torch.Tensor:
    """Small and large, of both signs, and the edges; a whole number of vectors."""
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 5.0, 8.0, 10.0, 1e-6, 0.7, float("inf")]
    edges += [-float("inf"), float("nan"), 0.135, 0.865, 1e-30, 1 - 1e-7, -3.0, 2.09, -2.1]
    ranges = [torch.linspace(-0.999, 0.999, 203), torch.linspace(-25, 60, 317)]
    x = torch.cat([*(part.double() for part in ranges), torch.tensor(edges, dtype=torch.float64)])
    return torch.cat([x, torch.ones(-x.numel() % 16)]).to(dtype)


@each_width
def test_special_functions(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    held = [name for name in DTYPES if name == "float32" or lanes * 8 <= max(isa.vector_bytes, 8)]
    numbers = {
        (op, dtype): elementwise(unit, op, [dtype], dtype, dtype) for op in UNARY for dtype in held
    }
    unit.build()
    failures = []
    for (op, dtype), number in numbers.items():
        x = points(DTYPES[dtype])
        out = torch.empty_like(x)
        unit.run(number, [x, out], out.numel())
        rtol, atol = 0.0, 0.0
        if op in TIGHT:
            rtol, atol = (TIGHT[op] if dtype == "float32" else 1e-9), 1e-6
        try:
            torch.testing.assert_close(
                out, apply(op, [x], dtype), rtol=rtol, atol=atol, equal_nan=True
            )
        except AssertionError as error:
            failures.append(f"{op} of {dtype}: {error}")
    assert not failures, "\n".join(failures)


@each_width
def test_zeta(isa, lanes) -> None:
    """Of every order and both signs; ATen returns early where further terms do not count."""
    if lanes * 8 > max(isa.vector_bytes, 8):
        pytest.skip("float64 does not fit")
    unit = Unit(isa, lanes)
    number = elementwise(unit, "zeta", ["float64", "float64"], "float64", "float64")
    unit.build()
    edges = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, 1 + 1e-9, 2.0, 3.0, 40.0]
    x = torch.tensor([*edges, 0.5, 1.5, 2.5, 7.0, 700.0, 1e300], dtype=torch.float64)
    q = torch.cat([x, torch.linspace(-30, 30, 232, dtype=torch.float64), torch.logspace(-8, 8, 8)])
    a, b = (one.contiguous() for one in torch.cartesian_prod(x, q).unbind(1))
    out = torch.empty_like(a)
    unit.run(number, [a, b, out], a.numel())
    torch.testing.assert_close(out, torch.special.zeta(a, b), rtol=1e-14, atol=0, equal_nan=True)


@each_width
def test_greatest_common_divisors(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    numbers = {
        dtype: elementwise(unit, "gcd", [dtype, dtype], dtype, dtype)
        for dtype in ("int32", "int16", "int8", "uint8", "int64")
        if dtype != "int64" or lanes * 8 <= max(isa.vector_bytes, 8)
    }
    unit.build()
    for dtype, number in numbers.items():
        held = getattr(torch, dtype)
        limits = torch.iinfo(held)
        whole = torch.arange(-128, 128) if limits.bits > 8 else torch.arange(256) + limits.min
        a, b = torch.cartesian_prod(whole, whole).unbind(1)
        if limits.bits > 8:
            random = torch.randint(limits.min, limits.max, (2, 4096))
            step = max(1, limits.max // 46368)
            ends = torch.tensor([limits.min, limits.max, limits.min + 1, 0, 3, step * 28657])
            ends = torch.cartesian_prod(ends, ends).T.repeat(1, 4)
            a, b = torch.cat([torch.stack([a, b]), random, ends], 1)
        a, b = a.to(held).contiguous(), b.to(held).contiguous()
        out = torch.empty_like(a)
        unit.run(number, [a, b, out], a.numel())
        assert torch.equal(out, torch.gcd(a, b)), dtype


def test_divisors_are_found_by_vectors() -> None:
    isa = max((isa for isa, _ in WIDTHS), key=lambda isa: isa.vector_bytes)
    for dtype in ("int8", "int32"):
        unit = Unit(isa, isa.vector_bytes // 4)
        elementwise(unit, "gcd", [dtype, dtype], dtype, dtype)
        assert "special::gcd" not in unit.source()
