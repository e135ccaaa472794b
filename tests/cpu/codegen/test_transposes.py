"""Transposed reads: any size and dtype against torch, and which form the generator chooses."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.codegen.cpp.isa import AVX2, AVX512, PORTABLE, Isa, cpu_flags, runnable
from compiler.codegen.cpp.nests import emit
from compiler.codegen.cpp.unit import buffer_dtypes
from compiler.codegen.cpp.vocabulary import Vocabulary
from compiler.loops.nest import Nest
from tests.cpu.codegen.nests import CompiledProgram, compile_programs, programs

ISAS = runnable(cpu_flags())
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8)


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randint(-9, 9, shape).to(dtype)


def joined(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y + x.transpose(-1, -2)


@pytest.fixture(scope="module", params=ISAS, ids=[isa.name for isa in ISAS])
def compiled(request: pytest.FixtureRequest) -> dict[tuple[torch.dtype, int], CompiledProgram]:
    """For each dtype and rank a program of any size, all of one unit."""
    cases = {}
    for dtype in DTYPES:
        for outer in ((), (5,)):
            inputs = numbers(dtype, *outer, 37, 53), numbers(dtype, *outer, 53, 37)
            cases[dtype, len(outer)] = programs(joined, *inputs, dynamic=True)[0]
    made = compile_programs(list(cases.values()), request.param)
    return dict(zip(cases, made, strict=True))


@settings(deadline=None, max_examples=60)
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


@pytest.mark.parametrize("isa", ISAS, ids=[isa.name for isa in ISAS])
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


@pytest.mark.parametrize(
    ("isa", "dtype", "shape", "in_blocks"),
    [
        (AVX512, torch.float32, (1024, 1024), True),
        (AVX512, torch.float32, (1000, 1024), True),
        (AVX512, torch.float32, (1024, 1000), False),
        (AVX512, torch.float32, (2048, 512), False),
        (AVX512, torch.int32, (1000, 1000), False),
        (AVX512, torch.float64, (1000, 1000), True),
        (AVX512, torch.bfloat16, (1000, 1000), True),
        (AVX2, torch.float32, (1000, 1000), True),
        (PORTABLE, torch.float32, (1000, 1000), True),
    ],
)
def test_tiles_are_used_at_once_where_they_take_whole_lines(isa, dtype, shape, in_blocks) -> None:
    rows, columns = shape
    inputs = numbers(dtype, columns, rows), numbers(dtype, rows, columns)
    (program,) = programs(joined, *inputs)
    (nest,) = (step for step in program.steps if isinstance(step, Nest))
    body = emit(nest, buffer_dtypes(program), Vocabulary(isa)).body
    assert ("_block" in body) == in_blocks
    assert ("_tile[" in body) == (not in_blocks)
