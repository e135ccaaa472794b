"""Conversions between all dtypes and the rounding of the 16-bit floats, against torch."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
import torch

from tcw.compiler.codegen.cpp.isa import AVX512
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.engine.backend import backend
from tcw.compiler.loops.dtypes import BYTES, FLOATS, REDUCED
from tests.cpu.codegen.test_vocabulary_operators import edges, fits, padded
from tests.cpu.codegen.units import WIDTHS, Unit, each_width, elementwise, same

DTYPES = tuple(BYTES)


@cache
def every_half(dtype: str) -> torch.Tensor:
    """All 65536 bit patterns."""
    return torch.arange(65536, dtype=torch.int32).to(torch.int16).view(getattr(torch, dtype))


@cache
def between(dtype: str) -> torch.Tensor:
    """float32: every 16-bit value, the midpoints to their neighbours, and a step to each side."""
    values = every_half(dtype).float()
    values = values[values.isfinite()]
    bits = values.view(torch.int32)
    half = 0x8000 if dtype == "bfloat16" else 0x1000
    around = torch.cat([bits, bits + half - 1, bits + half, bits + half + 1, bits + 2 * half - 1])
    tiny = torch.tensor([2.0**-24, 2.0**-25, 2.0**-25 * 1.0001, 2.0**-26, 65519.99, 65520.0, 1e5])
    special = torch.tensor([float("inf"), float("nan"), 0.0, 1e-40, 3.4e38, 1e-45])
    return padded(torch.cat([around.view(torch.float32), tiny, -tiny, special, -special]))


@each_width
def test_conversions_are_atens(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    dtypes = [dtype for dtype in DTYPES if fits(dtype, isa, lanes)]
    numbers = {
        (source, target): elementwise(unit, "convert", [source], target, target)
        for source, target in itertools.product(dtypes, dtypes)
    }
    unit.build()
    wrong = []
    for (source, target), number in numbers.items():
        values = padded(edges(source))
        expected = values.to(getattr(torch, target))
        out = torch.empty_like(expected)
        unit.run(number, [values, out], out.numel())
        if not same(out, expected).all():
            at = int((~same(out, expected)).nonzero()[0])
            wrong.append(
                f"{source} to {target}: {values[at].item()} is {out[at].item()}, "
                f"ATen {expected[at].item()}"
            )
    assert not wrong, "\n".join(wrong)


def test_short_integers_widen_to_eight_bytes_in_one_instruction() -> None:
    vocabulary = Vocabulary(AVX512)
    lanes = vocabulary.lanes(8)
    for source, letter in (("int8", "b"), ("int16", "w")):
        lanes.apply("convert", ("x",), (source,), "int64")
        assert f"pmovsx{letter}q512_mask" in vocabulary.prelude(), source


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "bool"])
def test_a_sum_of_short_integers_with_a_rest_compiles(dtype: str) -> None:
    """GCC 12 and 13 failed where the rest of a row is masked after it is widened."""
    x = (torch.arange(65333) % 7 - 3).to(getattr(torch, dtype))
    for wide in (torch.int64, torch.float64, torch.int32):
        function = torch.compile(lambda x, wide=wide: x.sum(dtype=wide), backend=backend)
        assert function(x) == x.sum(dtype=wide)


@each_width
def test_sixteen_bit_floats_round_to_nearest_even(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    out_of = {
        dtype: elementwise(unit, "convert", [dtype], "float32", "float32") for dtype in REDUCED
    }
    into = {dtype: elementwise(unit, "convert", ["float32"], dtype, dtype) for dtype in REDUCED}
    unit.build()
    for dtype in REDUCED:
        values = every_half(dtype)
        out = torch.empty(values.numel())
        unit.run(out_of[dtype], [values, out], values.numel())
        assert same(out, values.float()).all()
        singles = between(dtype)
        rounded = torch.empty(singles.numel(), dtype=getattr(torch, dtype))
        unit.run(into[dtype], [singles, rounded], singles.numel())
        wrong = ~same(rounded, singles.to(rounded.dtype))
        assert not wrong.any(), (dtype, singles[wrong][:5], rounded[wrong][:5])


@each_width
def test_where_and_comparisons_mix_sizes(isa, lanes) -> None:
    unit = Unit(isa, lanes)
    code = unit.lanes
    dtypes = [dtype for dtype in DTYPES if fits(dtype, isa, lanes)]
    numbers = {}
    for compared, chosen in itertools.product(dtypes, dtypes):
        a, b = (code.load(compared, f"({code.storage(compared)}*)p[{k}] + i") for k in (0, 1))
        less = code.apply("lt", [a, b], [compared, compared], "bool")
        x, y = (code.load(chosen, f"({code.storage(chosen)}*)p[{k}] + i") for k in (2, 3))
        value = code.apply("where", [less, x, y], ["bool", chosen, chosen], chosen)
        body = code.store(chosen, f"({code.storage(chosen)}*)p[4] + i", value)
        numbers[compared, chosen] = unit.kernel(f"for (long i = 0; i < n; i += {lanes}) {body}")
    unit.build()
    for (compared, chosen), number in numbers.items():
        generator = torch.Generator().manual_seed(2)
        a, b = (torch.randint(0, 3, (64,), generator=generator) for _ in range(2))
        x, y = (torch.randint(0, 100, (64,), generator=generator) for _ in range(2))
        a, b = (side.to(getattr(torch, compared)) for side in (a, b))
        x, y = (side.to(getattr(torch, chosen)) for side in (x, y))
        out = torch.empty_like(x)
        unit.run(number, [a, b, x, y, out], 64)
        assert torch.equal(out, torch.where(a < b, x, y)), (compared, chosen)


def test_low_precision_arithmetic_is_atens() -> None:
    isa, lanes = WIDTHS[0]
    unit = Unit(isa, lanes)
    ops = ("add", "sub", "mul", "div", "maximum", "remainder", "floor_divide")
    numbers = {
        (op, dtype): elementwise(unit, op, [dtype, dtype], dtype, dtype)
        for op in ops
        for dtype in REDUCED & FLOATS
    }
    unit.build()
    for (op, dtype), number in numbers.items():
        generator = torch.Generator().manual_seed(3)
        a, b = (torch.randn(4096, generator=generator).to(getattr(torch, dtype)) for _ in range(2))
        out = torch.empty_like(a)
        unit.run(number, [a, b, out], a.numel())
        if op == "floor_divide":
            expected = torch.div(a.float(), b.float(), rounding_mode="floor").to(a.dtype)
        elif op == "remainder":
            expected = torch.remainder(a.float(), b.float()).to(a.dtype)
        else:
            expected = getattr(torch, op)(a, b)
        assert same(out, expected).all(), (op, dtype)
