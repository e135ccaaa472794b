"""Kernels that differ only in numbers are one kernel; what must not be shared is left alone."""

from __future__ import annotations

from tcw.compiler.codegen.triton import alike
from tcw.compiler.codegen.triton.alike import shared
from tcw.compiler.codegen.triton.kernel import TritonKernel
from tcw.compiler.codegen.triton.tiles import Tile

TILE = Tile((0,), (1,), 64, 32, 4, looped=True)
SUMS = """\
@triton.jit
def NAME(a, sum):
    # sum: [{rows}] x {columns}, in parts
    program = tl.program_id(0)
    part = program % {parts}
    chunk = {chunk}
    x = (program // {parts}) * 64 + tl.arange(0, 64)[:, None]
    total = tl.full([64, 32], 0.0, tl.float32)
    for start in range(part * chunk, tl.minimum(part * chunk + chunk, {rows}), 32):
        r = start + tl.arange(0, 32)[None, :]
        total += tl.load(a + x + r * {columns}).to(tl.float32)
    tl.store(sum + part * {columns} + x, tl.sum(total, 1)[:, None])
"""
SCALED = """\
@triton.jit
def NAME(a, b):
    x = tl.program_id(0) * {block} + tl.arange(0, {block})
    value = tl.load(a + x)
    x0 = {at} % {columns}
    tl.store(b + x, value * tl.load(a + x0))
"""
IMAGES = """\
@triton.jit
def NAME(a, b):
    x = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(b + x, tl.load(a + x // {size}) {more})
"""


def kernel(body: str, *types: str, programs: int = 10_000, tile: Tile = TILE) -> TritonKernel:
    lines = [line for line in body.splitlines(keepends=True) if not line.strip().startswith("#")]
    return TritonKernel(
        body=body,
        pointers=("a", "b"),
        types=types or ("*bf16", "*fp32"),
        sizes=(),
        grid=((programs, 1),),
        warps=tile.warps,
        lines=(),
        needs=frozenset(),
        key=f"{''.join(lines)}\n{' '.join(types)} {tile}",
        tile=tile,
    )


def sums(rows: int, columns: int, parts: int, chunk: int = 128) -> TritonKernel:
    return kernel(SUMS.format(rows=rows, columns=columns, parts=parts, chunk=chunk))


def test_one_kernel_for_several_sizes() -> None:
    one, two = shared([sums(100352, 256, 9), sums(25088, 512, 131, 192)])
    assert one.key == two.key
    assert "def NAME(a, sum, number_0, number_1, number_2, number_3):" in one.body
    assert "part = program % number_0\n    chunk = number_1" in one.body
    assert "(program // number_0) * 64 + tl.arange(0, 64)" in one.body
    assert "chunk, number_2), 32)" in one.body
    assert "+ r * number_3)" in one.body
    assert "part * number_3 + x" in one.body
    assert [n.value for n in one.numbers] == [9, 128, 100352, 256]
    assert [n.value for n in two.numbers] == [131, 192, 25088, 512]
    assert [n.multiple for n in one.numbers] == [1, 16, 16, 16] == [n.multiple for n in two.numbers]
    assert "[25088] x 512, in parts" in two.body


def test_what_all_share_stays_a_number() -> None:
    one, two = shared([sums(100352, 256, 9), sums(50176, 256, 9)])
    assert [n.value for n in one.numbers] == [100352]
    assert one.key == two.key


def test_equal_kernels_have_no_parameters() -> None:
    both = [sums(100352, 256, 9), sums(100352, 256, 9)]
    assert shared(both) == both


def test_a_step_of_memory_that_is_aligned_otherwise() -> None:
    """With 257 columns a thread loads one element at a time, with 256 eight."""
    both = [sums(100352, 256, 9), sums(100352, 257, 9)]
    assert shared(both) == both


def test_another_tile() -> None:
    wide = Tile((0,), (1,), 64, 64, 4, looped=True)
    other = kernel(SUMS.format(rows=64, columns=256, parts=9, chunk=128), tile=wide)
    both = [sums(100352, 256, 9), other]
    assert shared(both) == both


def images(size: int, more: str = "", *types: str, programs: int) -> TritonKernel:
    return kernel(IMAGES.format(size=size, more=more), *types, programs=programs)


def test_what_positions_are_divided_by() -> None:
    large = [images(49, programs=10_000), images(51, programs=10_000)]
    assert shared(large) == large
    one, two = shared([images(49, programs=8), images(51, programs=8)])
    assert one.key == two.key
    assert one.numbers[0].value == 49
    assert two.numbers[0].value == 51


def scaled(columns: int, block: int = 1024, at: str = "x") -> TritonKernel:
    return kernel(SCALED.format(columns=columns, block=block, at=at))


def test_remainders_by_powers_of_two() -> None:
    """A mask takes them, which a parameter is as good for, and rows stay rows for the compiler."""
    one, two = shared([scaled(256), scaled(2048)])
    assert one.key == two.key
    assert "x0 = power_remainder(x, number_0)\n" in one.body
    assert one.needs == {"power_remainder"}
    assert [n.value for n in one.numbers] == [256]
    assert [(n.value, n.multiple) for n in two.numbers] == [(2048, 16)]


def test_remainders_that_no_mask_takes() -> None:
    for one, two in (
        (scaled(256), scaled(768)),  # no power of two
        (scaled(256), scaled(8)),  # rows shorter than a vector
        (scaled(256, block=8), scaled(512, block=8)),  # positions that are not aligned
        (scaled(256, at="(x // 64)"), scaled(512, at="(x // 64)")),  # not in a row
        (scaled(256, at="value"), scaled(512, at="value")),  # values, which may be negative
    ):
        assert shared([one, two]) == [one, two]


def test_kernels_without_others_like_them_are_not_parsed(monkeypatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(alike, "_literals", lambda body, *_: parsed.append(body) or [])
    alike.shared([sums(100352, 256, 9), scaled(256), scaled(256)])
    assert not parsed


def test_dtypes_that_a_parameter_would_change() -> None:
    bytes_ = [images(7, f"* {n}", "*u8", "*u8", programs=8) for n in (3, 5)]
    assert shared(bytes_) == bytes_
    doubles = [images(7, f"* {n}", "*fp64", "*fp64", programs=8) for n in (0.3, 0.5)]
    assert shared(doubles) == doubles
    singles = shared([images(7, f"* {n}", "*fp32", "*fp32", programs=8) for n in (0.3, 0.5)])
    assert [single.numbers[0].value for single in singles] == [0.3, 0.5]
    assert [single.numbers[0].type for single in singles] == ["fp32", "fp32"]


def test_a_zero_may_decide_what_is_compiled() -> None:
    both = [images(7, f"+ {n}", programs=8) for n in (0, 5)]
    assert shared(both) == both
