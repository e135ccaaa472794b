"""Reductions of columns, and what follows from them or goes into them."""

from __future__ import annotations

import pytest

from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.loops.graph import Call
from tcw.compiler.loops.layouts import Layout
from tcw.compiler.loops.nest import Nest
from tests.no_torch.fusion.build import Builder, load, op, rows, rule, together


def means(length: int, columns: int) -> Builder:
    b = Builder()
    b.input("x", length, columns)
    b.reduce("total", (length, columns), "rk", load("x"))
    b.map("mean", (columns,), op("sqrt", load("total")))
    b.output("mean", columns)
    return b


@pytest.mark.parametrize(
    ("length", "columns", "one"),
    [(64, 4096, True), (512, 2048, True), (1024, 4096, False), (512, 512, False), (64, 512, True)],
)
def test_many_short_columns_are_finished_in_their_loop(
    length: int, columns: int, one: bool
) -> None:
    """Small domains, too."""
    assert together(means(length, columns), "total", "mean") is one


def centred(run: int) -> Builder:
    """Columns less their means, plus a tensor whose last two dimensions lie the other way round."""
    b = Builder()
    shape, columns = (2048, 32, run), 32 * run
    b.input("x", 2048, columns)
    b.input("y", *shape)
    b.reduce("total", (2048, columns), "rk", load("x"))
    swapped = Layout(shape, (columns, 1, 32))
    summed = op("add", load("total", Layout((2048, columns), (0, 1))), load("y", swapped))
    b.map("add", shape, summed)
    b.output("add", *shape)
    return b


def test_an_operand_in_another_order_cuts_columns() -> None:
    assert rule(centred(8), "total", "add") == "strided rows"
    assert together(centred(16), "total", "add")


def repeated(columns: int) -> Builder:
    """Column sums of a row's maximum plus a number for each column."""
    b = Builder()
    shape = (512, columns)
    b.input("x", *shape)
    b.input("bias", columns)
    b.reduce("amax", shape, "kr", load("x"), "max")
    biased = op("add", load("amax", rows(*shape)), load("bias", Layout(shape, (0, 1))))
    b.map("add", shape, biased)
    b.call("call", "amax", 512)
    b.reduce("total", (2, 256, columns), "rkk", load("add"))
    b.output("call", 512)
    b.output("total", 256, columns)
    return b


def test_what_few_values_make_is_computed_where_columns_are_reduced() -> None:
    """The nest of sums then loads 512 maxima, and not 512 elements for each column."""
    fusion = fuse(repeated(64).graph)
    written = {buffer for step in fusion.program.steps for buffer in step_writes(step)}
    assert "total" in written
    assert "add" not in written


def step_writes(step: Nest | Call) -> list[str]:
    return list(step.writes()) if isinstance(step, Nest) else []
