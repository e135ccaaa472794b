"""Every operator on every dtype against torch, over edges and ranges, at every width."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy
import pytest
import torch

from tcw.compiler.codegen.cpp.vocabulary import DIVISION_BY_ZERO
from tcw.compiler.loops.dtypes import BYTES, FLOATS, INTEGERS
from tcw.compiler.loops.operators import OPERATORS
from tests.cpu.codegen.units import RUNNABLE, Unit, each_width, elementwise, same

ALL = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")


def rounded_root(a: torch.Tensor) -> torch.Tensor:
    """The processor's square root, as IEEE 754 has it."""
    with numpy.errstate(invalid="ignore"):
        return torch.from_numpy(numpy.sqrt(a.numpy()))


REFERENCES: dict[str, Callable[..., torch.Tensor]] = {
    "fma": lambda a, b, c: (a.double() * b.double() + c.double()).float(),
    # rounded correctly, which torch's square root, of whichever library, is not everywhere
    "sqrt": rounded_root,
    "floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "trunc_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "shift_left": torch.bitwise_left_shift,
    "shift_right": torch.bitwise_right_shift,
}
EXACT_FLOATS = (
    *("add", "sub", "mul", "neg", "abs", "div", "floor_divide"),
    *("trunc_divide", "remainder", "fmod", "reciprocal", "sign", "maximum", "minimum"),
    *("fmax", "fmin", "copysign", "floor", "ceil", "trunc"),
    *("round", "eq", "ne", "lt", "le", "gt", "ge"),
    *("isnan", "isinf", "signbit", "sqrt", "rsqrt"),
)
INTEGER = (
    *("add", "sub", "mul", "neg", "abs", "floor_divide", "trunc_divide"),
    *("remainder", "fmod", "sign", "maximum", "minimum", "fmax", "fmin"),
    *("floor", "ceil", "trunc", "round", "eq", "ne", "lt"),
    *("le", "gt", "ge", "isnan", "isinf", "signbit", "bitwise_and"),
    *("bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "pow"),
)
BOOL = (
    *("add", "mul", "maximum", "minimum", "fmax", "fmin", "eq"),
    *("ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or"),
    *("bitwise_xor", "bitwise_not", "isnan", "isinf", "signbit", "abs", "sign"),
)


def reference(op: str) -> Callable[..., torch.Tensor]:
    if op in REFERENCES:
        return REFERENCES[op]
    return getattr(torch, op)


def edges(dtype: str) -> torch.Tensor:
    """Values where implementations differ."""
    kind = getattr(torch, dtype)
    if dtype == "bool":
        return torch.tensor([False, True, True, False])
    if dtype in FLOATS:
        info = torch.finfo(kind)
        values = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.0, 0.1, 1e-3, 123.456, 4e9, 1e19, 3e38]
        values += [info.tiny, info.tiny / 8, info.eps, info.max, float("inf")]
        return torch.tensor([*values, *(-v for v in values), float("nan"), -7.25], dtype=kind)
    info = torch.iinfo(kind)
    values = {0, 1, 2, 3, 5, 7, 8, 31, 63, 100, info.max, info.max - 1, info.min, info.min + 1}
    if dtype != "uint8":
        values |= {-1, -2, -3, -7, -8, -100}
    return torch.tensor(sorted(values), dtype=kind)


def padded(values: torch.Tensor) -> torch.Tensor:
    """Repeated to a multiple of 16 elements."""
    count = -(-values.numel() // 16) * 16
    return values.repeat(-(-count // values.numel()))[:count].contiguous()


def pairs(dtype: str, op: str) -> list[torch.Tensor]:
    values = edges(dtype)
    if op in ("floor_divide", "trunc_divide", "remainder", "fmod") and dtype in INTEGERS:
        # ATen stops at 0, and is undefined on the least integer by -1
        left, right = torch.cartesian_prod(values, values[(values != 0)]).unbind(1)
        keep = (right != -1) if dtype != "uint8" else right == right
        return [padded(left[keep]), padded(right[keep])]
    return [padded(side) for side in torch.cartesian_prod(values, values).unbind(1)]


@cache
def inputs(op: str, dtype: str) -> list[torch.Tensor]:
    arity = OPERATORS[op].arity
    if arity == 1:
        return [padded(edges(dtype))]
    sides = pairs(dtype, op)
    if arity == 2:
        return sides
    # what the product's rounding leaves behind: only one rounding in all can tell
    return [*sides, -(sides[0] * sides[1])]


EITHER_ZERO = ("maximum", "minimum", "fmax", "fmin")
"""Of zeros of both signs, either may be returned."""


@cache
def answer(op: str, dtype: str) -> torch.Tensor:
    """ATen's, or what it would be where it has no kernel for bool."""
    values = inputs(op, dtype)
    if dtype == "bool" and op in ("isinf", "isnan", "signbit"):
        return torch.zeros_like(values[0])
    return values[0] if dtype == "bool" and op == "abs" else reference(op)(*values)


CASES = [
    *((op, dtype) for op in EXACT_FLOATS for dtype in ("float32", "float64")),
    ("fma", "float32"),
    *((op, dtype) for op in INTEGER for dtype in ALL if dtype in INTEGERS),
    *((op, "bool") for op in BOOL),
]


def unsure(op: str, values: list[torch.Tensor], expected: torch.Tensor) -> torch.Tensor:
    """Where torch's vectorised fmod gives up: the quotient overflows."""
    if op not in ("fmod", "remainder") or not expected.is_floating_point():
        return torch.zeros_like(expected, dtype=torch.bool)
    quotient = values[0] / values[1]
    return expected.isnan() & quotient.isinf() & values[0].isfinite() & (values[1] != 0)


def fits(dtype: str, isa: object, lanes: int) -> bool:
    size = {"float64": 8, "int64": 8}.get(dtype, 4)
    return lanes == 1 or size * lanes <= isa.vector_bytes  # type: ignore[attr-defined]


@each_width
def test_operators_compute_what_aten_does(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    numbers = {}
    for op, dtype in CASES:
        if fits(dtype, isa, lanes):
            stored = "bool" if OPERATORS[op].boolean else dtype
            operands = [dtype] * OPERATORS[op].arity
            numbers[op, dtype] = elementwise(unit, op, operands, stored, stored)
    unit.build()
    wrong = []
    for (op, dtype), number in numbers.items():
        values, expected = inputs(op, dtype), answer(op, dtype)
        out = torch.empty_like(expected)
        error = unit.run(number, [*values, out], out.numel())
        agree = same(out, expected)
        if op not in EITHER_ZERO and out.is_floating_point():
            agree &= (out != 0) | (out.signbit() == expected.signbit())
        agree |= unsure(op, values, expected)
        if not agree.all() or error:
            at = int((~agree).nonzero()[0]) if not agree.all() else 0
            wrong.append(
                f"{op} {dtype}{[v[at].item() for v in values]}: "
                f"{out[at].item()}, ATen {expected[at].item()} ({int((~agree).sum())} wrong, "
                f"error {error})"
            )
    assert not wrong, "\n".join(wrong)


def near_multiples(kind: torch.dtype) -> list[torch.Tensor]:
    """Dividends at and next to multiples of their divisors, of either sign; most quotients are
    small, and those of the last 1,600 up to twice the largest that is not computed by `fmod`."""
    random = torch.Generator().manual_seed(0)
    count, limit = 1 << 14, 1 << (23 if kind is torch.float32 else 52)
    most = torch.where(torch.arange(count) < count - 1600, 1000, limit)
    times = (torch.rand(count, generator=random, dtype=torch.float64) * most).round().to(kind)
    divisors = torch.randn(count, generator=random, dtype=torch.float64).to(kind)
    divisors[: count // 4] *= torch.finfo(kind).tiny
    apart = torch.randint(-1, 2, (count,), generator=random)
    exact = times * divisors
    dividends = torch.where(apart == 0, exact, torch.nextafter(exact, exact + apart * exact.abs()))
    dividends[::64] = 0.0
    signs = torch.randint(0, 2, (count,), generator=random) * 2 - 1
    return [dividends * signs, divisors]


@each_width
def test_floor_division_beside_whole_quotients(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    dtypes = [dtype for dtype in ("float32", "float64") if fits(dtype, isa, lanes)]
    numbers = {
        dtype: elementwise(unit, "floor_divide", [dtype, dtype], dtype, dtype) for dtype in dtypes
    }
    unit.build()
    for dtype, number in numbers.items():
        values = near_multiples(getattr(torch, dtype))
        expected, out = reference("floor_divide")(*values), torch.empty_like(values[0])
        unit.run(number, [*values, out], out.numel())
        agree = (out == expected) & (out.signbit() == expected.signbit())
        at = (~agree).nonzero()[:3]
        assert agree.all(), (dtype, [v[at] for v in (*values, out, expected)], int((~agree).sum()))


INTEGERS_TESTED = tuple(dtype for dtype in ALL if dtype in INTEGERS)


@each_width
def test_a_zero_divisor_is_reported_and_answers_zero(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    dtypes = [dtype for dtype in INTEGERS_TESTED if fits(dtype, isa, lanes)]
    numbers = {}
    for dtype in dtypes:
        kind = code.storage(dtype)
        a, b = (code.load_partial(dtype, f"({kind}*)p[{k}]", "n") for k in (0, 1))
        for op in ("floor_divide", "trunc_divide", "remainder", "fmod"):
            value = code.apply(op, [a, b], [dtype, dtype], dtype, count="n")
            numbers[op, dtype] = unit.kernel(code.store(dtype, f"({kind}*)p[2]", value))
    unit.build()
    for (op, dtype), number in numbers.items():
        kind = getattr(torch, dtype)
        a, b = torch.full((lanes,), 7, dtype=kind), torch.full((lanes,), 2, dtype=kind)
        out = torch.empty_like(a)
        # lanes beyond the count hold zeros, which are nobody's divisors
        assert unit.run(number, [a, b, out], max(lanes - 1, 1)) == 0, (op, dtype)
        b[0] = 0
        assert unit.run(number, [a, b, out], lanes) == DIVISION_BY_ZERO, (op, dtype)
        assert out[0] == 0
        if dtype != "uint8":
            a[:], b[:] = torch.iinfo(kind).min, -1
            assert unit.run(number, [a, b, out], lanes) == 0
            assert out[0] == (a[0] if op.endswith("divide") else 0), (op, dtype)


@each_width
def test_constant_exponents_and_divisors(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    numbers = {}
    exponents = (0, 1, 2, 3, 0.5, -0.5, -1, -2, 4, 2.5)
    for dtype in ALL[:-1]:
        if not fits(dtype, isa, lanes):
            continue
        kind = code.storage(dtype)
        x = code.load(dtype, f"({kind}*)p[0] + i")
        cases = [("pow", e) for e in exponents if dtype in FLOATS or e in (0, 1, 2, 3, 4)]
        if dtype in INTEGERS:
            ops = ("floor_divide", "trunc_divide", "remainder", "fmod")
            cases += [(op, divisor) for op in ops for divisor in (1, 2, 7, 64, 100)]
        for op, operand in cases:
            value = code.apply(op, [x, code.constant(operand, dtype)], [dtype, dtype], dtype)
            store = code.store(dtype, f"({kind}*)p[1] + i", value)
            numbers[op, operand, dtype] = unit.kernel(
                f"for (long i = 0; i < n; i += {lanes}) {store}"
            )
    unit.build()
    for (op, operand, dtype), number in numbers.items():
        x = padded(edges(dtype))
        out = torch.empty_like(x)
        unit.run(number, [x, out], x.numel())
        expected = torch.pow(x, operand) if op == "pow" else reference(op)(x, operand)
        if dtype in FLOATS:
            torch.testing.assert_close(out, expected, equal_nan=True)
        else:
            assert torch.equal(out, expected), (op, operand, dtype, x, out, expected)


@each_width
def test_integer_division_where_floats_round(isa, lanes) -> None:
    """Quotients by floats are exact: beside multiples, at the limits, and beyond 2^52."""
    unit = Unit(isa, lanes)
    dtypes = [dtype for dtype in INTEGERS_TESTED if fits(dtype, isa, lanes)]
    ops = ("floor_divide", "trunc_divide", "remainder", "fmod")
    numbers = {
        (op, dtype): elementwise(unit, op, [dtype, dtype], dtype, dtype)
        for op in ops
        for dtype in dtypes
    }
    unit.build()
    chance = torch.Generator().manual_seed(0)
    for dtype in dtypes:
        info = torch.iinfo(getattr(torch, dtype))
        greatest = min(info.max, 1 << 52) if dtype == "int64" else info.max
        b = torch.randint(1, greatest, (2048,), generator=chance)
        b[::2] = torch.randint(1, 100, (1024,), generator=chance)
        a = b * (torch.randint(0, greatest, (2048,), generator=chance) // b)
        a += torch.randint(-1, 2, (2048,), generator=chance)
        if info.min < 0:
            b *= torch.randint(0, 2, (2048,), generator=chance) * 2 - 1
            a *= torch.randint(0, 2, (2048,), generator=chance) * 2 - 1
            a[:8] = info.min
            a[8:16] = info.max
        a, b = a.clamp(info.min, info.max), b.where(b != -1, 1)
        a, b = (side.to(getattr(torch, dtype)) for side in (a, b))
        for op in ops:
            out = torch.empty_like(a)
            assert unit.run(numbers[op, dtype], [a, b, out], a.numel()) == 0
            expected = reference(op)(a, b)
            wrong = out != expected
            assert not wrong.any(), (op, dtype, a[wrong][0], b[wrong][0], out[wrong][0])


@pytest.mark.parametrize("dtype", sorted(INTEGERS))
def test_integer_powers_square_whole_vectors(dtype) -> None:
    isa = RUNNABLE[0]
    unit = Unit(isa, isa.vector_bytes // max(BYTES[dtype], 4))
    elementwise(unit, "pow", [dtype, dtype], dtype, dtype)
    prelude = unit.vocabulary.prelude()
    assert "x = x * x" in prelude
    assert "[k]" not in prelude
