"""Elementary functions against float64: error in units in the last place, and ATen's edges."""

from __future__ import annotations

import math
import operator
from functools import cache

import mpmath
import pytest
import torch

from tcw.compiler.loops.dtypes import BYTES
from tests.cpu.codegen.test_vocabulary_operators import edges, padded
from tests.cpu.codegen.units import RUNNABLE, Unit, each_width, elementwise

ULPS = {
    "exp": 1.0,
    "exp2": 1.1,
    "expm1": 2.0,
    "log": 1.0,
    "log2": 1.3,
    "log10": 1.75,
    "log1p": 1.5,
    "sigmoid": 2.5,
    "tanh": 1.75,
    "erf": 1.5,
    "sin": 1.5,
    "cos": 1.5,
    "tan": 1.5,
    "asin": 1.5,
    "acos": 1.5,
    "atan": 1.5,
    "sinh": 2.5,
    "cosh": 2.0,
    "asinh": 2.5,
    "acosh": 2.5,
    "atanh": 1.5,
    "erfc": 3.0,
}
"""The greatest error of float32 that is allowed, at every width."""


@cache
def points() -> torch.Tensor:
    """Every magnitude of float32 with both signs, denser where functions bend, and the edges."""
    magnitudes = torch.logspace(-44.8, 38.5, 6000, dtype=torch.float64)
    near = torch.linspace(0, 20, 8000, dtype=torch.float64)
    middle = torch.linspace(20, 120, 2000, dtype=torch.float64)
    around_one = 1 + torch.logspace(-7.5, -1, 500, dtype=torch.float64)
    quarter_turns = torch.arange(1, 45500, 7, dtype=torch.float64) * (math.pi / 2)
    x = torch.cat([magnitudes, near, middle, around_one, 2 - around_one, quarter_turns])
    x = torch.cat(
        [x, -x, torch.arange(-150, 129).double(), torch.arange(-150, 127).double().exp2()]
    )
    edges = [
        0.0,
        -0.0,
        float("inf"),
        -float("inf"),
        float("nan"),
        88.72283,
        88.7229,
        -103.9,
        -104.1,
    ]
    edges += [-87.34, 1e-40, -1e-40, 7.90531, 9.0, -9.0, 128.0, -149.0, -150.0, 71476.0, 71477.0]
    edges += [0.46052488684654236]  # where 1 - x is rounded
    x = torch.cat([x, torch.tensor(edges, dtype=torch.float64)]).float()
    return (
        x[: x.numel() // 16 * 16]
        if x.numel() % 16 == 0
        else torch.cat([x, torch.ones(16 - x.numel() % 16)])
    )


def ulps(ours: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """|ours - exact| in units in the last place of exact in float32; 0 where both are the same
    infinity or NaN, or where the exact value rounds to ours; infinite where only one is."""
    rounded = exact.float()
    same = (ours == rounded) | (ours.isnan() & rounded.isnan())
    one = torch.finfo(torch.float32)
    unit = torch.exp2(torch.floor(torch.log2(exact.abs().clamp(min=one.tiny))) - 23)
    error = (ours.double() - exact).abs() / unit
    error = torch.where(ours.isfinite() & rounded.isfinite(), error, float("inf"))
    # just beyond the greatest number, a function that errs by one unit may stay below it
    edge = rounded.isinf() & (ours.abs() == one.max) & (exact.abs() < one.max * (1 + 1e-6))
    return torch.where(same | edge, 0.0, error)


@cache
def float64_values(op: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The float64 values at the points, and which of float32's zeros are negative."""
    function = getattr(torch, op)
    return function(points().double()), function(points()).signbit()


@each_width
def test_float32_functions_are_within_their_bounds(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    numbers = {op: elementwise(unit, op, ["float32"], "float32", "float32") for op in ULPS}
    unit.build()
    x = points()
    failures = []
    for op, number in numbers.items():
        out = torch.empty_like(x)
        unit.run(number, [x, out], x.numel())
        exact, negative = float64_values(op)
        error = ulps(out, exact)
        if op == "sigmoid":
            # where exp(-x) overflows, 1 / (1 + exp(-x)) is 0, in ATen too
            error[x < -88.7] = 0
        worst = int(error.argmax())
        if error[worst] > ULPS[op]:
            failures.append(
                f"{op}({x[worst].item()!r}) = {out[worst].item()!r}: {error[worst]:.2f} ulp "
                f"({int((error > ULPS[op]).sum())} beyond {ULPS[op]})"
            )
        zero = (x == 0) & (out == 0)
        wrong = zero & (out.signbit() != negative)
        if wrong.any():
            failures.append(f"{op} of a zero has the wrong sign")
    assert not failures, "\n".join(failures)


@each_width
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_exp_of_what_is_not_positive(isa, lanes, dtype) -> None:
    unit, name = Unit(isa, lanes), str(dtype).removeprefix("torch.")
    if lanes * BYTES[name] > max(isa.vector_bytes, BYTES[name]):
        pytest.skip("float64 has half as many lanes")
    ops = ("exp_nonpositive", "exp_nonpositive_beside_one")
    all_of_it, beside_one = (elementwise(unit, op, [name], name, name) for op in ops)
    unit.build()
    limit = 87 if dtype == torch.float32 else 708
    points = torch.linspace(-1.3 * limit, 0, 4080, dtype=torch.float64)
    far = [-limit, -1e3, -1e9, -1e15, torch.finfo(dtype).min, -math.inf, -0.0, -1e-40]
    x = torch.cat([points, torch.tensor(far, dtype=torch.float64)]).to(dtype)
    payloads = torch.arange(8, dtype=torch.int64) * 0x1FF + 1
    bits, quiet = (
        (torch.int32, 0x7FC00000) if dtype == torch.float32 else (torch.int64, 0x7FF8 << 48)
    )
    x = torch.cat([x, (payloads + quiet).to(bits).view(dtype)])
    whole, part = torch.empty_like(x), torch.empty_like(x)
    unit.run(all_of_it, [x, whole], x.numel())
    unit.run(beside_one, [x, part], x.numel())
    exact = x.exp()
    torch.testing.assert_close(whole, exact, rtol=3e-7, atol=1.5e-45, equal_nan=True)
    torch.testing.assert_close(part, exact, rtol=3e-7, atol=1.7e-38, equal_nan=True)
    if lanes > 1:
        assert not part[x < -limit].any()


@each_width
def test_a_quick_erf_has_a_small_absolute_error(isa, lanes) -> None:
    if lanes == 1:
        pytest.skip("a scalar takes libm's erf")
    unit = Unit(isa, lanes)
    number = elementwise(unit, "erf_quick", ["float32"], "float32", "float32")
    unit.build()
    x = points()
    out = torch.empty_like(x)
    unit.run(number, [x, out], x.numel())
    exact, _ = float64_values("erf")
    assert torch.equal(out.isnan(), x.isnan())
    assert (out - exact).abs().nan_to_num(0).max() <= 4e-7
    assert torch.equal(out[x.abs() > 3.9], x.sign()[x.abs() > 3.9])


TWO_ULPS = {"pow": 1.0, "atan2": 1.5, "hypot": 1.5}


@each_width
def test_float32_functions_of_two_operands(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    numbers = {
        op: elementwise(unit, op, ["float32", "float32"], "float32", "float32") for op in TWO_ULPS
    }
    unit.build()
    grid = torch.cat([edges("float32"), torch.tensor([-0.0, 2.0, -2.0, -3.0, 1e-40, 1.0000001])])
    a, b = (padded(side) for side in torch.cartesian_prod(grid, grid).unbind(1))
    generator = torch.Generator().manual_seed(8)
    bases = torch.exp(torch.randn(16384, generator=generator) * 3).float()
    exponents = torch.randn(16384, generator=generator) * 20
    signs = torch.randint(0, 2, (16384,), generator=generator) * 2 - 1
    whole = torch.randint(-30, 30, (16384,), generator=generator).float()
    x, y = torch.cat([a, bases, bases * signs]), torch.cat([b, exponents, whole])
    failures = []
    for op, number in numbers.items():
        out = torch.empty_like(x)
        unit.run(number, [x, y, out], x.numel())
        exact = getattr(torch, op)(x.double(), y.double())
        error = ulps(out, exact)
        worst = int(error.argmax())
        if error[worst] > TWO_ULPS[op]:
            failures.append(
                f"{op}({x[worst].item()!r}, {y[worst].item()!r}) = {out[worst].item()!r}, exactly "
                f"{exact[worst].item()!r}: {error[worst]:.2f} ulp ({int((error > 1).sum())})"
            )
    assert not failures, "\n".join(failures)


WIDE_ULPS = {
    "expm1": 1.5,
    "atanh": 1.5,
    "sigmoid": 3.0,
    "tanh": 2.0,  # libm's, where products are not fused
    "sin": 1.5,
    "cos": 1.5,
    "sinh": 1.7,
    "cosh": 1.5,
    "asin": 1.3,
    "erfc": 1.6,
    "acosh": 1.5,
    "asinh": 1.5,
    "log10": 1.75,  # likewise
}
"""The greatest error of float64 that is allowed where it is not 1.1."""
EXACTLY = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
}
"""Functions that mpmath has by another name."""
TWO_WIDE_ULPS = {"atan2": 1.5}
TWO_WIDE = {"pow": operator.pow, "atan2": mpmath.atan2, "hypot": mpmath.hypot}


@cache
def wide_points() -> torch.Tensor:
    """Magnitudes of float64 with both signs, denser where functions bend."""
    magnitudes = torch.logspace(-307, 308, 180, dtype=torch.float64)
    near = torch.linspace(0, 40, 200, dtype=torch.float64)
    far = torch.linspace(40, 720, 60, dtype=torch.float64)
    around_one = 1 + torch.logspace(-16, -1, 40, dtype=torch.float64)
    more = torch.tensor([709.5, 710.2, -709.5, 1.5e154, 1e200, -1e200], dtype=torch.float64)
    x = torch.cat([magnitudes, near, far, around_one, 2 - around_one])
    return padded(torch.cat([x, -x, more]))


def exactly(function, *values: float):
    """With 40 digits; None where it is no real number of float64's normal range."""
    with mpmath.workdps(40):
        try:
            found = function(*map(mpmath.mpf, values))
        except (ValueError, ZeroDivisionError, OverflowError):
            return None
        if isinstance(found, mpmath.mpc) or not mpmath.isfinite(found):
            return None
        return found if 1e-300 < abs(found) < 1.7e308 else None


def wide_error(ours: float, exact) -> float:
    """In units in the last place."""
    with mpmath.workdps(40):
        return float(abs(mpmath.mpf(ours) - exact) / math.ulp(float(exact)))


@cache
def exact_values(op: str) -> list:
    """None where mpmath would take too long."""
    function = EXACTLY.get(op) or getattr(mpmath, op)
    most = {"sin": 1e15, "cos": 1e15, "tan": 1e15}.get(op, math.inf)
    return [exactly(function, x) if abs(x) <= most else None for x in wide_points().tolist()]


@each_width
def test_float64_functions_are_within_their_bounds(isa, lanes) -> None:
    if 8 * lanes > isa.vector_bytes and lanes > 1:
        pytest.skip("float64 has half as many lanes")
    unit = Unit(isa, lanes)
    numbers = {op: elementwise(unit, op, ["float64"], "float64", "float64") for op in ULPS}
    unit.build()
    x, edge = wide_points(), padded(edges("float64"))
    failures = []
    for op, number in numbers.items():
        out = torch.empty_like(x)
        unit.run(number, [x, out], x.numel())
        error, at, ours = max(
            (wide_error(ours, exact) if math.isfinite(ours) else math.inf, at, ours)
            for at, ours, exact in zip(x.tolist(), out.tolist(), exact_values(op), strict=True)
            if exact is not None
        )
        if error > WIDE_ULPS.get(op, 1.1):
            failures.append(f"{op}({at!r}) = {ours!r}: {error:.2f} ulp")
        out = torch.empty_like(edge)
        unit.run(number, [edge, out], edge.numel())
        expected = getattr(torch, op)(edge)
        wrong = ~torch.isclose(out, expected, rtol=1e-14, atol=0, equal_nan=True)
        if wrong.any():
            failures.append(f"{op}{edge[wrong].tolist()} = {out[wrong].tolist()}")
    assert not failures, "\n".join(failures)


@each_width
def test_float64_functions_of_two_operands(isa, lanes) -> None:
    if 8 * lanes > isa.vector_bytes and lanes > 1:
        pytest.skip("float64 has half as many lanes")
    unit = Unit(isa, lanes)
    both = ["float64", "float64"]
    numbers = {op: elementwise(unit, op, both, "float64", "float64") for op in TWO_WIDE}
    unit.build()
    chance = torch.Generator().manual_seed(9)
    x = torch.exp(torch.randn(512, generator=chance, dtype=torch.float64) * 8)
    y = torch.randn(512, generator=chance, dtype=torch.float64) * 30
    grid = (padded(side) for side in torch.cartesian_prod(*[edges("float64")] * 2).unbind(1))
    a, b = grid
    failures = []
    for op, number in numbers.items():
        out = torch.empty_like(x)
        unit.run(number, [x, y, out], x.numel())
        for one, other, ours in zip(x.tolist(), y.tolist(), out.tolist(), strict=True):
            exact = exactly(TWO_WIDE[op], one, other)
            if exact is not None and not wide_error(ours, exact) <= TWO_WIDE_ULPS.get(op, 1.1):
                error = wide_error(ours, exact)
                failures.append(f"{op}({one!r}, {other!r}) = {ours!r}: {error:.2f} ulp")
        out = torch.empty_like(a)
        unit.run(number, [a, b, out], a.numel())
        expected = getattr(torch, op)(a, b)
        wrong = ~torch.isclose(out, expected, rtol=1e-14, atol=0, equal_nan=True)
        if wrong.any():
            one, other, ours = (side[wrong][0].item() for side in (a, b, out))
            failures.append(f"{op}({one!r}, {other!r}) = {ours!r}, not {expected[wrong][0]}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", [*sorted(ULPS), "atan2"])
def test_functions_are_polynomials_where_products_are_fused(op, dtype) -> None:
    isa = RUNNABLE[0]
    if not isa.fma:
        pytest.skip("no fused multiply-add")
    unit = Unit(isa, isa.vector_bytes // BYTES[dtype])
    elementwise(unit, op, [dtype] * (2 if op == "atan2" else 1), dtype, dtype)
    assert not unit.vocabulary.libraries


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["log", "log2", "log10"])
def test_logarithms_take_exponent_and_edges_from_instructions_where_there_are_any(
    op, dtype
) -> None:
    isa = RUNNABLE[0]
    if isa.name != "avx512" or not isa.builtins:
        pytest.skip("AVX-512 has them")
    unit = Unit(isa, isa.vector_bytes // BYTES[dtype])
    elementwise(unit, op, [dtype], dtype, dtype)
    text = unit.source()
    assert all(name in text for name in ("getexp", "getmant", "fixupimm"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("op", "operands"), [("sin", 1), ("floor_divide", 2), ("fmod", 2)])
def test_a_rare_case_is_found_by_comparing_into_a_mask_where_there_are_masks(
    op, operands, dtype
) -> None:
    isa = RUNNABLE[0]
    if isa.name != "avx512" or not isa.builtins:
        pytest.skip("AVX-512 has them")
    unit = Unit(isa, isa.vector_bytes // BYTES[dtype])
    elementwise(unit, op, [dtype] * operands, dtype, dtype)
    text = unit.source()
    assert "_mask(" in text
    assert "ptestm" not in text
