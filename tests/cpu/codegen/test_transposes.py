"""Transposed reads: any size and dtype against torch, and which form the generator chooses."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tcw.compiler.codegen.cpp.isa import AVX2, AVX512, PORTABLE, Isa, runnable
from tcw.compiler.codegen.cpp.nests import emit
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.unit import buffer_dtypes
from tcw.compiler.loops.nest import Nest
from tcw.compiler.processor import feature_flags
from tests.cpu.codegen.nests import CompiledProgram, compile_programs, programs
from tests.cpu.codegen.units import each_isa
from tests.long import mostly_long

ISAS = runnable(feature_flags())
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8)


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randint(-9, 9, shape).to(dtype)


def joined(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y + x.transpose(-1, -2)


@pytest.fixture(scope="module", params=each_isa(ISAS))
def compiled(request: pytest.FixtureRequest) -> dict[tuple[torch.dtype, int], CompiledProgram]:
    """For each dtype and rank a program of any size, all of one unit."""
    cases = {}
    for dtype in DTYPES:
        for outer in ((), (5,)):
            inputs = numbers(dtype, *outer, 37, 53), numbers(dtype, *outer, 53, 37)
            cases[dtype, len(outer)] = programs(joined, *inputs, dynamic=True)[0]
    made = compile_programs(list(cases.values()), request.param)
    return dict(zip(cases, made, strict=True))


@settings(max_examples=60)
@given(
    dtype=st.sampled_from(DTYPES),
    outer=st.lists(st.integers(2, 4), max_size=1),
    rows=st.integers(2, 150),
    columns=st.integers(2, 300),
)
def test_any_size(compiled, dtype, outer, rows, columns) -> None:
    x, y = numbers(dtype, *outer, columns, rows), numbers(dtype, *outer, rows, columns)
    (got,) = compiled[dtype, len(outer)].run((x, y))
    assert torch.equal(got, joined(x, y))


@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_rows_pages_apart(isa: Isa) -> None:
    """Whole and broken blocks, in rows, in columns and in both; both layouts of the sum."""
    cases = []
    for dtype in (torch.float32, torch.bfloat16):
        for rows, columns in ((64, 256), (130, 141), (3, 1024), (70, 17)):
            apart = numbers(dtype, rows, 4096)[:, :columns]
            cases.append((numbers(dtype, columns, rows), apart))
            cases.append((apart, numbers(dtype, columns, rows)))
    made = compile_programs([programs(joined, *case)[0] for case in cases], isa)
    for (x, y), program in zip(cases, made, strict=True):
        (got,) = program.run((x, y))
        assert torch.equal(got, joined(x, y)), (x.dtype, x.shape, x.stride(), y.stride())


@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_squares_of_a_large_nest(isa: Isa) -> None:
    """Cut off at the end of the rows, of the columns and of both; many short rows."""
    cases = []
    for dtype, rows, columns in (
        (torch.float32, 1030, 2050),
        (torch.int8, 2048, 1030),
        (torch.float64, 1029, 2048),
        (torch.float32, 1030, 37),
        (torch.bfloat16, 515, 64),
    ):
        cases.append((numbers(dtype, columns, rows), numbers(dtype, rows, columns)))
    made = compile_programs([programs(joined, *case)[0] for case in cases], isa)
    for (x, y), program in zip(cases, made, strict=True):
        (got,) = program.run((x, y))
        assert torch.equal(got, joined(x, y)), (x.dtype, x.shape)


def products(x: torch.Tensor) -> torch.Tensor:
    return (x[1:] * x[:-1]).t().contiguous()


@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_results_across_memory(isa: Isa) -> None:
    """Whole and broken tiles that are written along the axis that the lanes are not on."""
    cases = []
    for dtype in (*DTYPES, torch.float16, torch.int32, torch.bool):
        for rows, columns in ((65, 64), (38, 53), (200, 300)):
            cases.append(numbers(dtype, rows, columns))
    made = compile_programs([programs(products, case)[0] for case in cases], isa)
    for x, program in zip(cases, made, strict=True):
        (got,) = program.run((x,))
        assert torch.equal(got, products(x)), (x.dtype, x.shape)


def in_a_row(*given: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.t() for x in given], 1)


@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_what_lies_across_memory_is_concatenated(isa: Isa) -> None:
    cases = []
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        for count in (3, 9):
            cases.append([numbers(dtype, 53, 37) for _ in range(count)])
    made = compile_programs([programs(in_a_row, *case)[0] for case in cases], isa)
    for case, program in zip(cases, made, strict=True):
        (got,) = program.run(case)
        assert torch.equal(got, in_a_row(*case)), (case[0].dtype, len(case))


@pytest.mark.parametrize("count", [3, 9])
def test_as_many_tiles_as_writes_are_transposed_in_blocks(count: int) -> None:
    text = text_of(AVX512, in_a_row, *(torch.randn(200, 300) for _ in range(count)))
    assert text.count("transpose_tile16(") >= count
    assert "load_strided16(" not in text


def side_by_side(*given: torch.Tensor) -> torch.Tensor:
    return torch.stack([x.t() for x in given], -1)


@pytest.mark.parametrize("part", mostly_long(range(2), (0,)))
@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_interleaved_results_of_what_lies_across_memory(isa: Isa, part: int) -> None:
    """Tiles in registers, and in blocks of whole tiles for three and four. Each part has each count
    in each dtype, and each dtype and each count in each size."""
    cases = []
    for kind, dtype in enumerate((torch.float32, torch.bfloat16, torch.int8, torch.int64)):
        for size, (rows, columns) in enumerate(((256, 64), (37, 53))):
            for count in (2, 3, 4):
                if (kind + size + count) % 2 == part:
                    cases.append([numbers(dtype, rows, columns) for _ in range(count)])
    made = compile_programs([programs(side_by_side, *case)[0] for case in cases], isa)
    for case, program in zip(cases, made, strict=True):
        (got,) = program.run(case)
        assert torch.equal(got, side_by_side(*case)), (case[0].dtype, case[0].shape, len(case))


def test_interleaved_results_are_written_in_vectors() -> None:
    """The lanes lie along what is written without gaps; the reads are transposed."""
    for count in (2, 3):
        body = text_of(AVX512, side_by_side, *[torch.randn(256, 256) for _ in range(count)])
        assert "store_interleaved" in body
        assert "transpose" in body
        assert "strided" not in body


def softmax_of(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.transpose(-1, -2), -1)


def normalized(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    z = x.transpose(-1, -2).contiguous() + y
    return F.layer_norm(z, z.shape[-1:]), z.cumsum(-1)


@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_rows_across_memory(isa: Isa) -> None:
    """Reductions along what lies strided, whole and broken tiles, into contiguous rows."""
    torch.manual_seed(0)
    cases = []
    for shape in ((64, 1024), (37, 53), (3, 77, 20), (2, 16, 17)):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            cases.append((softmax_of, (torch.randn(shape).to(dtype),)))
        x = torch.randn(shape)
        cases.append((normalized, (x, torch.randn(x.transpose(-1, -2).shape))))
    made = compile_programs([programs(function, *case)[0] for function, case in cases], isa)
    for (function, case), program in zip(cases, made, strict=True):
        expected = function(*case)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for got, wanted in zip(program.run(case), expected, strict=True):
            torch.testing.assert_close(got, wanted)


def test_a_band_of_rows_across_memory_is_transposed_first() -> None:
    assert "arg_block" in text_of(AVX512, softmax_of, torch.randn(1000, 512))
    long = text_of(AVX512, softmax_of, torch.randn(30000, 512))
    assert "arg_block" not in long, "a band of such rows stays in no near cache"
    kept = text_of(AVX512, lambda x: x.t().logsumexp(-1), torch.randn(1000, 512))
    assert "arg_block" not in kept, "nothing is written along the rows"


@pytest.mark.parametrize(
    ("shape", "tiled"),
    [((12, 3000), True), ((3000, 12), True), ((300, 8, 9), True), ((7, 3000), False)],
)
def test_tiles_that_are_half_full_are_transposed(shape: tuple[int, ...], tiled: bool) -> None:
    text = text_of(AVX512, lambda x: x.transpose(-1, -2).contiguous(), torch.randn(shape))
    assert ("transpose_edge16(" in text) == tiled


@pytest.mark.parametrize(
    ("rows", "groups", "tiled"), [(5, 3, True), (7, 2, True), (4, 3, False), (6, 1, False)]
)
def test_few_rows_of_elements_far_apart_are_transposed(rows: int, groups: int, tiled: bool) -> None:
    x = torch.randn(6, 576, groups, rows)
    text = text_of(AVX512, lambda x: x.permute(0, 3, 2, 1).contiguous(), x)
    assert ("transpose_edge16(" in text) == tiled


@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_few_rows_of_elements_far_apart(isa: Isa) -> None:
    def shuffled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 3, 2, 1) + y

    cases = [
        (numbers(dtype, 2, 37, 3, rows), numbers(dtype, 2, rows, 3, 37))
        for rows in range(2, 8)
        for dtype in (torch.float32, torch.bfloat16, torch.float64)
    ]
    made = compile_programs([programs(shuffled, *case)[0] for case in cases], isa)
    for (x, y), program in zip(cases, made, strict=True):
        (got,) = program.run((x, y))
        assert torch.equal(got, shuffled(x, y)), (x.dtype, x.shape)


@pytest.mark.parametrize("part", mostly_long(range(3), (0,)))
@pytest.mark.parametrize("isa", each_isa(ISAS))
def test_few_rows_or_columns(isa: Isa, part: int) -> None:
    """Every number from a quarter of a vector to a whole one, on either side. Each part has each
    number in each dtype, and each number on each side."""
    kinds = ((torch.float32, ()), (torch.bfloat16, (3,)), (torch.float64, (2,)))
    cases = [
        (numbers(dtype, *outer, columns, rows), numbers(dtype, *outer, rows, columns))
        for few in range(4, 17)
        for kind, (dtype, outer) in enumerate(kinds)
        for side, (rows, columns) in enumerate(((few, 37), (53, few), (few, 16 - few // 2)))
        if (few + kind + side) % 3 == part
    ]
    made = compile_programs([programs(joined, *case)[0] for case in cases], isa)
    for (x, y), program in zip(cases, made, strict=True):
        (got,) = program.run((x, y))
        assert torch.equal(got, joined(x, y)), (x.dtype, x.shape)


def test_the_winner_of_short_rows_is_found_without_reducing_lanes() -> None:
    short = text_of(AVX512, lambda x: x.min(1), torch.randn(102, 102, 102))
    assert "argmin_lanes(" not in short, "each lane has a row of its own"
    long = text_of(AVX512, lambda x: x.min(1), torch.randn(16, 4096, 32))
    assert "argmin_lanes(" in long


def text_of(isa: Isa, function, *inputs: torch.Tensor) -> str:
    (program,) = programs(function, *inputs)
    (nest,) = (step for step in program.steps if isinstance(step, Nest))
    return emit(nest, buffer_dtypes(program), Vocabulary(isa)).body


@pytest.mark.parametrize(
    ("isa", "dtype", "shape", "in_blocks"),
    [
        (AVX512, torch.float32, (1024, 1024), False),
        (AVX512, torch.int32, (1000, 1000), False),
        (AVX512, torch.float64, (1024, 1024), False),
        (AVX512, torch.bfloat16, (1024, 1024), False),
        (AVX2, torch.float32, (1000, 1000), False),
        (AVX2, torch.float32, (1024, 1024), True),
        (AVX2, torch.float64, (1024, 1024), False),
        (PORTABLE, torch.float32, (2048, 2048), True),
        (PORTABLE, torch.float32, (1000, 1000), False),
    ],
)
def test_blocks_where_parts_of_lines_would_evict_one_another(isa, dtype, shape, in_blocks) -> None:
    rows, columns = shape
    body = text_of(isa, joined, numbers(dtype, columns, rows), numbers(dtype, rows, columns))
    assert ("_block" in body) == in_blocks
    assert ("_tile_0" in body) == (not in_blocks)
    assert "_tile[" not in body


@pytest.mark.parametrize("size", [512, 2048])
def test_a_large_nest_is_cut_into_squares(size: int) -> None:
    x = numbers(torch.float32, size, size)
    body = text_of(AVX512, joined, x, x.clone())
    assert ("const long start = chunk * 128;" in body) == (size == 2048)
    assert "load_strided" not in body
    assert "_edge" not in body
