"""Sums and scans of a few columns keep what they carry in registers from row to row."""

from __future__ import annotations

import re

import pytest
import torch

from tcw.compiler.codegen.cpp.isa import AVX2, AVX512, PORTABLE, Isa
from tests.cpu.codegen.texts import text

ADDED = re.compile(r"store\(\w*sums\w*[^,]*, load\d+\(\w*sums")
"""A row that is added to sums in memory."""


@pytest.mark.parametrize("isa", [AVX512, AVX2, PORTABLE], ids=lambda isa: isa.name)
@pytest.mark.parametrize("columns", [5, 12, 16, 24, 31])
def test_sums_of_any_few_columns_are_registers(columns: int, isa: Isa) -> None:
    x = torch.rand(8000, columns)
    for function in (lambda x: x.sum(0), lambda x: x.amax(0), lambda x: x.var(0)):
        body = text(function, x, comment="y = f(x)", isa=isa)
        assert not ADDED.search(body), body


def test_columns_of_each_run_of_rows_are_registers() -> None:
    for columns in (40, 64):
        body = text(lambda x: x.sum(1), torch.rand(30, 2000, columns), comment="y = x.sum(1)")
        assert "for (; j + 2 <= j_end; j += 2)" in body, "units that differ in one axis"
        inside = body[body.index("const auto row_step") :]
        assert "step(0, sum_part_0);" in inside, body
        assert not ADDED.search(inside[: inside.index("store(")]), body
    scanned = text(lambda x: x.cumsum(1), torch.rand(8, 512, 64), comment="y = x.cumsum(1)")
    assert all(f"step({place});" in scanned for place in (0, 16)), scanned
    wide = text(lambda x: x.sum(1), torch.rand(8, 512, 320), comment="y = x.sum(1)")
    assert "step(0" not in wide


def test_columns_that_vary_along_a_middle_axis_are_registers() -> None:
    for sizes in ((512, 6, 13, 3), (64, 16, 40, 8)):
        body = text(lambda x: x.sum((0, 2)), torch.rand(sizes), comment="y = x.sum((0, 2))")
        inside = body[body.index("for (long k") :]
        assert not ADDED.search(inside[: inside.index("store(")]), body


def test_the_last_columns_are_added_as_a_whole_vector() -> None:
    """A part of a vector that is stored cannot be forwarded to the next row's load."""
    body = text(lambda x: x.sum(0), torch.rand(512, 234), comment="y = x.sum(0)")
    last = "load16(sum_sums + column) + load16(arg_row + column, count)"
    assert f"store(sum_sums + column, {last});" in body, body


def test_rows_side_by_side_add_to_registers_of_their_own() -> None:
    body = text(lambda x: x.sum(0), torch.randn(149796, 7), comment="y = x.sum(0)")
    assert "row_step(row + 3, " in body
    assert len(set(re.findall(r"row_step\(row[^,]*, (\w+)\)", body))) == 4
    heavy = text(lambda x: x.erf().exp().sin().sum(0), torch.randn(149796, 7), comment="y = f(x)")
    assert "row_step" not in heavy
    wide = text(lambda x: x.sum(0), torch.randn(9999, 128), comment="y = x.sum(0)")
    assert "row_step" not in wide
