"""The stage as a whole: what is inlined, what is one nest, in which order things run."""

from __future__ import annotations

import pytest

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.weights import CPU, GPU, Machine
from tcw.compiler.loops.expressions import Const, Gather, IndexTerm, Iota, ReadIndexed
from tcw.compiler.loops.graph import Buffer, Call, Graph, Operand
from tcw.compiler.loops.layouts import Layout, row_major, slice_dimension
from tcw.compiler.loops.nest import Nest, Reduction, Write, expressions
from tcw.compiler.loops.sizes import product, symbol
from tcw.compiler.loops.verifier import verify_program
from tests.no_torch.fusion.build import (
    Builder,
    F,
    choices,
    columns,
    load,
    nests,
    normalisation,
    only_nest,
    op,
    rows,
)


def test_rows_scalars_and_column_sums_share_one_nest() -> None:
    fusion = fuse(normalisation().graph)
    nest = only_nest(fusion)
    assert [(axis.size, axis.reduced) for axis in nest.axes] == [(64, False), (256, True)]
    reductions = {s.name: s.over for s in nest.statements if isinstance(s, Reduction)}
    assert reductions == {"squares": (1,), "columns": (0,)}
    assert [s.buffer for s in nest.statements if isinstance(s, Write)] == ["add", "mul", "columns"]
    assert set(fusion.program.memories) == {"add", "mul", "columns"}
    assert nest.label == "add + squares + rsqrt + mul + columns"


def test_invariants_are_inlined_and_hoisted() -> None:
    b = Builder()
    b.input("x", 64, 256)
    b.input("s", 64)
    b.map("scale", (64,), op("exp", load("s")))
    b.map("mul", (64, 256), op("mul", load("x"), load("scale", rows(64, 256))))
    b.output("mul", 64, 256)
    gate = Gate()
    fusion = fuse(b.graph, gate)
    assert choices(gate, "inline") == [(("scale",), "inline", "invariant")]
    part, mul, _ = only_nest(fusion).statements
    assert not isinstance(part, Write)
    assert part.axes == (0,)
    assert mul.axes == (0, 1)


def test_what_is_long_to_compute_from_positions_along_the_lanes_is_kept() -> None:
    b = Builder()
    b.input("x", 64, 256)
    b.map("whole", (256,), op("convert", Iota(())))
    b.map("half", (256,), op("exp", load("whole")))
    b.map("part", (256,), op("exp", load("half")))
    b.map("row", (64,), op("exp", op("exp", op("convert", Iota(())))))
    both = op("add", load("part", columns(64, 256)), load("row", rows(64, 256)))
    b.map("mul", (64, 256), op("mul", load("x"), both))
    b.output("mul", 64, 256)
    gate = Gate()
    fuse(b.graph, gate)
    inlined = {names for names, choice, _ in choices(gate, "inline") if choice == "inline"}
    assert inlined == {("whole",), ("row",)}


def test_a_slice_of_a_computed_value_is_computed_where_it_is_read() -> None:
    b = Builder()
    b.input("x", 64, 96)
    b.map("exp", (64, 96), op("exp", load("x")))
    for i in range(3):
        part = slice_dimension((64, 96), 1, 32 * i, 32)
        b.map(f"part{i}", (64, 32), op("tanh", load("exp", part)))
        b.call(f"call{i}", f"part{i}", 64, 32)
        b.output(f"call{i}", 64, 32)
    gate = Gate()
    fusion = fuse(b.graph, gate)
    assert choices(gate, "inline") == [(("exp",), "inline", "disjoint")]
    assert sum("exp" in group for group in nests(fusion)) == 3 or len(fusion.groups) == 1


@pytest.mark.parametrize("machine", [CPU, GPU])
def test_a_copy_stays_if_its_reader_would_divide_an_index_for_each_element(
    machine: Machine,
) -> None:
    b = Builder()
    b.input("x", 40, 40)
    b.map("flat", (40, 40), load("x", Layout((40, 40), (1, 40))))
    b.map("rest", (1599,), op("exp", load("flat", Layout((1599,), (1,), 1))))
    b.output("rest", 1599)
    written = {b for step in fuse(b.graph, machine=machine).program.steps for b in step.writes()}
    assert written == ({"flat", "rest"} if machine is CPU else {"rest"})


def test_equal_nodes_are_computed_once_and_dead_ones_not_at_all() -> None:
    b = Builder()
    b.input("x", 64)
    b.map("one", (64,), op("exp", load("x")))
    b.map("same", (64,), op("exp", load("x")))
    b.map("dead", (64,), op("sin", load("x")))
    b.map("mul", (64,), op("mul", load("one"), load("same")))
    b.output("mul", 64)
    b.output("one", 64)
    assert nests(fuse(b.graph)) == [{"one", "same", "mul"}]


def test_what_is_equal_across_a_mutation_is_not() -> None:
    b = Builder()
    b.input("x", 64)
    b.map("one", (64,), op("exp", load("x")))
    b.store("copy", "x", (64,), Const(0.0, F))
    b.map("two", (64,), op("exp", load("x")))
    b.map("mul", (64,), op("mul", load("one"), load("two")))
    b.output("mul", 64)
    assert {name for group in nests(fuse(b.graph)) for name in group} == {
        "one",
        "copy",
        "two",
        "mul",
    }


def test_random_calls_keep_their_order() -> None:
    b = Builder()
    b.input("x", 8, 8)
    b.call("one", "x", 8, 8, target="aten.rand_like.default")
    b.call("two", "x", 8, 8, target="aten.bernoulli.default")
    b.map("late", (8, 8), op("exp", load("two")))
    b.output("late", 8, 8)
    b.output("one", 8, 8)
    names = [step.name for step in fuse(b.graph).program.steps if isinstance(step, Call)]
    assert names == ["one_call", "two_call"]


def test_nests_wait_until_a_call_needs_them() -> None:
    b = Builder()
    b.input("x", 8, 8)
    for i in range(3):
        b.call(f"mm{i}", "x", 8, 8)
        b.map(f"exp{i}", (8, 8), op("exp", load(f"mm{i}")))
        b.output(f"exp{i}", 8, 8)
    steps = fuse(b.graph).program.steps
    assert [isinstance(step, Call) for step in steps] == [True, True, True, False]


def test_the_same_graph_gives_the_same_program() -> None:
    one, two = fuse(normalisation().graph), fuse(normalisation().graph)
    assert one.program.steps == two.program.steps
    assert one.pairs == two.pairs
    assert one.pairs[0].id == "tcw/0/0/forward/fuse/add+squares"


def test_what_an_index_picks_from_a_row_is_computed_at_the_index() -> None:
    shape = (64, 512)
    b = Builder()
    b.input("x", *shape)
    b.input("t", 64, dtype="int64")
    b.reduce("amax", shape, "kr", load("x"), "max")
    b.map("sub", shape, op("sub", load("x"), load("amax", rows(*shape))))
    b.reduce("sum", shape, "kr", op("exp", load("sub")))
    b.map("log", shape, op("sub", load("sub"), op("log", load("sum", rows(*shape)))))
    pick = Gather(
        "log", (Layout((64,), (512,)),), (IndexTerm(load("t", dtype="int64"), 512, 1),), F
    )
    b.map("gather", (64,), op("neg", pick))
    b.output("gather", 64)
    gate = Gate()
    fusion = fuse(b.graph, gate)
    assert choices(gate, "column") == [(("log", "gather"), "pick", "column")]
    nest = only_nest(fusion)
    assert set(fusion.program.memories) == {"gather"}
    (read,) = [
        part
        for statement in nest.statements
        for part in expressions(statement)
        if isinstance(part, ReadIndexed)
    ]
    assert (read.buffer, read.address.strides) == ("x", (512, 0))
    kept = fuse(b.graph, Gate({"tcw/0/0/forward/column/log+gather": "store"}))
    assert set(kept.program.memories) == {"log", "gather"}


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_memory_that_nobody_writes_is_made(dtype: str) -> None:
    graph = Graph("g", nodes=[Buffer("none", dtype, (0, 3))])
    graph.outputs.append(Operand("none", dtype, (0, 3), (3, 1)))
    fusion = fuse(graph)
    verify_program(fusion.program)
    assert [s.buffer for s in only_nest(fusion).statements if isinstance(s, Write)] == ["none"]


def test_memory_that_nobody_fills_is_allocated_and_left_alone() -> None:
    """`empty`: a nest allocates it and writes nothing; all of it if its size is unknown."""
    for shape, wanted in (
        ((64, 32), [0]),
        ((symbol("s0"), 32), [symbol("s0"), 32]),
        ((0, 32), [0, 32]),
    ):
        graph = Graph("g", [Buffer("empty", "float32", shape)], ["s0"])
        graph.outputs = [Operand("empty", "float32", shape, row_major(shape).strides)]
        program = fuse(graph).program
        (nest,) = program.steps
        assert isinstance(nest, Nest)
        assert product(axis.size for axis in nest.axes) == product(wanted)
        verify_program(program)
