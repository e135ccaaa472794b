"""Nests written by hand against the reference interpreter: what no sample program needs to have."""

from __future__ import annotations

import pytest
import torch

from tcw.compiler.codegen.cpp.nests.registers import itemsizes
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.expressions import (
    Address,
    Const,
    Expression,
    IndexTerm,
    Local,
    Op,
    Position,
    Read,
    ReadIndexed,
)
from tcw.compiler.loops.graph import Graph
from tcw.compiler.loops.interpreter.run_programs import run_nest
from tcw.compiler.loops.interpreter.state import State
from tcw.compiler.loops.layouts import Layout
from tcw.compiler.loops.nest import Axis, Let, Nest, Reduction, ScanAlong, Statement, Write
from tests.cpu.codegen.nests import compiled

F32 = "float32"
ROWS, COLUMNS = 13, 37
FLAT = Address((COLUMNS, 1))


def read(name: str, address: Address = FLAT, dtype: str = F32) -> Read:
    return Read(name, address, dtype)


def op(name: str, *args: Expression, dtype: str = F32) -> Op:
    return Op(name, args, dtype)


def same(axes: tuple[Axis, ...], statements: tuple[Statement, ...], **memory: torch.Tensor) -> None:
    """The compiled nest leaves in memory what the interpreter leaves there."""
    nest = Nest("nest", axes, statements)
    state = State(Graph("graph"), (), None)
    state.memory = {name: tensor.clone() for name, tensor in memory.items()}
    run_nest(state, nest)
    dtypes = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in memory.items()}
    ours = {name: tensor.clone() for name, tensor in memory.items()}
    assert compiled(nest, dtypes)(ours, {}) == 0
    for name, expected in state.memory.items():
        torch.testing.assert_close(ours[name], expected, msg=lambda text, n=name: f"{n}: {text}")


AXES = (Axis(ROWS), Axis(COLUMNS))
REDUCED = (Axis(ROWS), Axis(COLUMNS, True))


def test_addresses_by_division() -> None:
    chain = (Layout((COLUMNS, ROWS), (1, COLUMNS)), Layout((ROWS * COLUMNS,), (1,)))
    address = Address((COLUMNS, 1), 0, chain)
    same(
        AXES,
        (
            Write("y", F32, FLAT, op("mul", read("x", address), Const(2.0, F32)), (0, 1)),
            Write("p", "int64", FLAT, Position(address), (0, 1)),
            Write("z", F32, address, read("x"), (0, 1)),
        ),
        x=torch.randn(ROWS * COLUMNS),
        y=torch.zeros(ROWS * COLUMNS),
        z=torch.zeros(ROWS * COLUMNS),
        p=torch.zeros(ROWS * COLUMNS, dtype=torch.int64),
    )


@pytest.mark.parametrize("mode", ["set", "add"])
def test_writes_that_collide_are_in_order(mode: str) -> None:
    index = IndexTerm(read("i", Address((1, 0)), "int64"), 5, COLUMNS)
    write = Write(
        "y",
        F32,
        Address((0, 1)),
        read("x"),
        (0, 1),
        (index,),
        mode,
        ordered=True,  # type: ignore[arg-type]
    )
    same(
        AXES,
        (write,),
        x=torch.randn(ROWS * COLUMNS),
        i=torch.randint(-5, 5, (ROWS,)),
        y=torch.ones(5 * COLUMNS),
    )


def test_writes_that_collide_along_every_axis() -> None:
    index = IndexTerm(read("i", dtype="int64"), 7, 1)
    write = Write("y", F32, Address((0, 0)), read("x"), (0, 1), (index,), "add", ordered=True)
    same(
        AXES,
        (write,),
        x=torch.randn(ROWS * COLUMNS),
        i=torch.randint(-7, 7, (ROWS * COLUMNS,)),
        y=torch.ones(7),
    )


def test_gather_by_lanes_and_by_rows() -> None:
    along = IndexTerm(read("i", Address((0, 1)), "int64"), 9, 1)
    across = IndexTerm(read("j", Address((1, 0)), "int64"), 4, 9)
    source = ReadIndexed("x", Address((0, 0)), (across, along), F32)
    same(
        AXES,
        (Write("y", F32, FLAT, source, (0, 1)),),
        x=torch.randn(36),
        i=torch.randint(-9, 9, (COLUMNS,)),
        j=torch.randint(0, 4, (ROWS,)),
        y=torch.zeros(ROWS * COLUMNS),
    )


def test_values_of_a_row_over_several_passes() -> None:
    total, top = Local("total", F32), Local("top", F32)
    wave = Local("wave", F32)
    same(
        REDUCED,
        (
            Let("wave", F32, op("sin", read("x")), (0, 1)),
            Reduction("total", F32, "sum", wave, (1,), (0,)),
            Reduction("top", F32, "max", op("sub", wave, total), (1,), (0,)),
            Reduction("least", "int64", "argmin", op("mul", wave, top), (1,), (0,)),
            Write("y", F32, FLAT, op("div", wave, op("add", top, total)), (0, 1)),
            Write("t", F32, Address((1, 0)), total, (0,)),
            Write("k", "int64", Address((1, 0)), Local("least", "int64"), (0,)),
        ),
        x=torch.randn(ROWS * COLUMNS),
        y=torch.zeros(ROWS * COLUMNS),
        t=torch.zeros(ROWS),
        k=torch.zeros(ROWS, dtype=torch.int64),
    )


def test_riders_of_every_kind() -> None:
    total = Local("total", F32)
    row = Local("row", F32)
    same(
        REDUCED,
        (
            Reduction("row", F32, "sum", read("x"), (1,), (0,)),
            Reduction("columns", F32, "sum", op("mul", read("x"), row), (0,), (1,)),
            Reduction("total", F32, "max", read("x"), (0, 1), ()),
            Reduction("rows", F32, "sum", op("abs", row), (0,), ()),
            Reduction("place", "int64", "argmax", read("x"), (0, 1), ()),
            Let("scaled", F32, op("mul", total, Const(3.0, F32)), ()),
            Write("c", F32, Address((0, 1)), Local("columns", F32), (1,)),
            Write("t", F32, Address((0, 0)), Local("scaled", F32), ()),
            Write("r", F32, Address((0, 0)), Local("rows", F32), ()),
            Write("p", "int64", Address((0, 0)), Local("place", "int64"), ()),
            Write("y", F32, FLAT, op("sub", read("x"), Local("scaled", F32)), (0, 1)),
        ),
        x=torch.randn(ROWS * COLUMNS),
        y=torch.zeros(ROWS * COLUMNS),
        c=torch.zeros(COLUMNS),
        t=torch.zeros(1),
        r=torch.zeros(1),
        p=torch.zeros(1, dtype=torch.int64),
    )


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_positions_that_32_bits_do_not_count_take_eight_bytes(op: str) -> None:
    def sizes(rows: int, columns: int) -> tuple[int, ...]:
        over = Reduction("place", "int64", op, read("x", Address((columns, 1))), (0, 1), ())
        write = Write("p", "int64", Address((0, 0)), Local("place", "int64"), ())
        nest = Nest("nest", (Axis(rows, True), Axis(columns, True)), (over, write))
        return itemsizes(Facts(nest), 1)

    assert sizes(1 << 15, 1 << 16) == (4,)
    assert sizes(1 << 15, (1 << 16) + 1) == (4, 8)


@pytest.mark.long
def test_argmax_of_more_than_two_to_the_31_elements() -> None:
    """3 GB."""
    x = torch.zeros((1 << 31) + 64, dtype=torch.int8)
    x[-5] = 1
    assert torch.compile(torch.argmax, backend="tcw")(x) == x.numel() - 5


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(axis: int, reverse: bool) -> None:
    same(
        AXES,
        (
            ScanAlong("run", F32, "sum", read("x"), axis, reverse, (0, 1)),
            ScanAlong("peak", F32, "max", read("x"), axis, False, (0, 1)),
            Write("y", F32, FLAT, op("add", Local("run", F32), Local("peak", F32)), (0, 1)),
        ),
        x=torch.randn(ROWS * COLUMNS),
        y=torch.zeros(ROWS * COLUMNS),
    )


def test_a_write_of_fewer_axes_happens_once() -> None:
    same(
        AXES,
        (
            Write("y", F32, FLAT, read("x"), (0, 1)),
            Write("c", F32, Address((0, 1)), read("w", Address((0, 1))), (1,), mode="add"),
            Write("n", F32, Address((0, 0)), Const(2.0, F32), (), mode="add"),
        ),
        x=torch.randn(ROWS * COLUMNS),
        w=torch.randn(COLUMNS),
        y=torch.zeros(ROWS * COLUMNS),
        c=torch.zeros(COLUMNS),
        n=torch.zeros(1),
    )


def test_a_result_in_the_place_of_an_argument() -> None:
    """The write of the first pass may overwrite what the second one reads."""
    total = Local("total", F32)
    nest = Nest(
        "nest",
        REDUCED,
        (
            Let("twice", F32, op("mul", read("x"), Const(2.0, F32)), (0, 1)),
            Write("y", F32, FLAT, Local("twice", F32), (0, 1)),
            Reduction("total", F32, "sum", Local("twice", F32), (1,), (0,)),
            Write("z", F32, FLAT, op("add", read("x"), total), (0, 1)),
        ),
    )
    x = torch.randn(ROWS, COLUMNS)
    dtypes = dict.fromkeys("xyz", F32)
    memory = x.clone().reshape(-1)
    z = torch.zeros(ROWS * COLUMNS)
    kernel = compiled(nest, dtypes, shared=("x", "y"))
    assert kernel({"x": memory, "y": memory, "z": z}, {}) == 0
    torch.testing.assert_close(memory, (x * 2).reshape(-1))
    expected = x + (x * 2).sum(-1, keepdim=True)
    torch.testing.assert_close(z, expected.reshape(-1))


def test_an_argument_changed_in_place_after_all_that_reads_it() -> None:
    twice, total = Local("twice", F32), Local("total", F32)
    same(
        REDUCED,
        (
            Let("twice", F32, op("mul", read("x"), Const(2.0, F32)), (0, 1)),
            Reduction("total", F32, "sum", twice, (1,), (0,)),
            Reduction("all", F32, "sum", twice, (0, 1), ()),
            Write("x", F32, FLAT, twice, (0, 1)),
            Write("y", F32, FLAT, op("add", twice, total), (0, 1)),
            Write("z", F32, FLAT, op("sub", twice, Local("all", F32)), (0, 1)),
        ),
        x=torch.randint(-9, 9, (ROWS * COLUMNS,)).float(),  # sums in any order are equal
        y=torch.zeros(ROWS * COLUMNS),
        z=torch.zeros(ROWS * COLUMNS),
    )


def test_a_write_that_waits_comes_before_those_that_overwrite_what_it_reads() -> None:
    """`m` waits for the second pass, as it may lie in `v`; `z` lies in `x`, of which `m` is made.

    So it was in a gradient of xLSTM, whose `z` was stored first.
    """
    twice, total = Local("twice", F32), Local("total", F32)
    nest = Nest(
        "nest",
        REDUCED,
        (
            Let("twice", F32, op("mul", read("x"), Const(2.0, F32)), (0, 1)),
            Write("m", F32, FLAT, op("mul", twice, Const(3.0, F32)), (0, 1)),
            Reduction("total", F32, "sum", twice, (1,), (0,)),
            Write("z", F32, FLAT, op("add", read("v"), total), (0, 1)),
        ),
    )
    x, v = torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    memory, m = x.clone().reshape(-1), torch.zeros(ROWS * COLUMNS)
    kernel = compiled(nest, dict.fromkeys("xvmz", F32), shared=("x", "v", "m", "z"))
    assert kernel({"x": memory, "z": memory, "v": v.reshape(-1), "m": m}, {}) == 0
    torch.testing.assert_close(m, (x * 6).reshape(-1))
    torch.testing.assert_close(memory, (v + (x * 2).sum(-1, keepdim=True)).reshape(-1))


def test_a_result_in_the_place_of_an_argument_beside_sums_of_columns() -> None:
    """What the sums need lies in the workspace: `y` is stored in the loop that adds up, and its
    values are not computed twice. A value that needs the sums, and `x` once more, makes it wait."""
    y, columns = Local("y", F32), Local("columns", F32)
    rows, width = 13, 32
    flat = Address((width, 1))
    statements: tuple[Statement, ...] = (
        Let("y", F32, op("erf", read("x", flat)), (0, 1)),
        Write("y", F32, flat, y, (0, 1)),
        Reduction("columns", F32, "sum", y, (0,), (1,)),
        Write("sums", F32, Address((0, 1)), columns, (1,)),
    )
    more = Write("z", F32, flat, op("add", read("x", flat), columns), (0, 1))
    x = torch.randn(rows, width)
    for again in (False, True):
        nest = Nest("nest", (Axis(rows), Axis(width)), (*statements, more) if again else statements)
        dtypes = dict.fromkeys(["x", "y", "sums", *("z" for _ in range(again))], F32)
        kernel = compiled(nest, dtypes, shared=("x", "y"))
        assert kernel.function.body.count("erf(") == (2 if again else 1)
        memory, sums = x.clone().reshape(-1), torch.zeros(width)
        z = torch.zeros(rows * width)
        assert kernel({"x": memory, "y": memory, "sums": sums, "z": z}, {}) == 0
        torch.testing.assert_close(memory, x.erf().reshape(-1))
        torch.testing.assert_close(sums, x.erf().sum(0))
        if again:
            torch.testing.assert_close(z, (x + x.erf().sum(0)).reshape(-1))
