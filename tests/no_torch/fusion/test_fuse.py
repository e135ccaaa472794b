"""The stage as a whole: what is inlined, what the gate may do, in which order things run."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from compiler.control.decisions import FUSE, Gate, Ruling
from compiler.decision import Decision, Detail
from compiler.fusion.fuse import fuse
from compiler.fusion.pairs import Pair, Round
from compiler.fusion.weights import CPU, GPU, Machine
from compiler.loops.expressions import Const, Gather, IndexTerm, Iota, ReadIndexed
from compiler.loops.graph import Buffer, Call, Graph, Operand
from compiler.loops.layouts import Layout, row_major, slice_dimension
from compiler.loops.nest import Nest, Reduction, Write, expressions
from compiler.loops.printer import nest_text
from compiler.loops.sizes import product, symbol
from compiler.loops.verifier import verify_program
from compiler.trace.records import FusionPair
from tests.no_torch.fusion.build import (
    Builder,
    F,
    choices,
    columns,
    load,
    nests,
    only_nest,
    op,
    rows,
)


def normalisation() -> Builder:
    """(x + y) normalised by its rows' root mean square; its column sums."""
    shape = (64, 256)
    b = Builder()
    b.input("x", *shape)
    b.input("y", *shape)
    b.map("add", shape, op("add", load("x"), load("y")))
    b.reduce("squares", shape, "kr", op("mul", load("add"), load("add")))
    b.map("rsqrt", (64,), op("rsqrt", op("mul", load("squares"), Const(1 / 256, F))))
    b.map("mul", shape, op("mul", load("add"), load("rsqrt", rows(*shape))))
    b.reduce("columns", shape, "rk", load("mul"))
    b.output("add", *shape)
    b.output("mul", *shape)
    b.output("columns", 256)
    return b


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


def test_a_veto_holds_whichever_of_the_two_loops_runs_first() -> None:
    """The second group of a pair may come before the first one, once that reads something else."""
    b = Builder()
    b.input("x", 4, 6)
    third = op("remainder", Iota((), "int64"), Const(3, "int64"))
    (still,) = (Layout((4, 6), (0, 0)),)
    b.map("picked", (4, 6), Gather("x", (still,), (IndexTerm(third, 24, 1, True, True),), F))
    b.map("tanh", (4, 6), op("tanh", load("x")))
    b.map("add", (4, 6), op("add", load("tanh"), load("x")))
    b.map("sin", (4, 6), op("sin", load("add")))
    b.output("picked", 24)
    b.output("sin", 24)
    vetoes = ("picked+tanh", "tanh+add")
    gate = Gate({f"tcw/{b.graph.name}/fuse/{one}": "apart" for one in vetoes})
    assert nests(fuse(b.graph, gate)) == [{"picked", "add", "sin"}, {"tanh"}]
    assert gate.refused() == []


def test_a_veto_keeps_nodes_apart_by_any_road() -> None:
    veto = "tcw/0/0/forward/fuse/add+columns"
    gate = Gate({veto: "apart"})
    fusion = fuse(normalisation().graph, gate)
    assert all(not {"add", "columns"} <= group for group in nests(fusion))
    assert not list(gate.unknown())


def test_an_illegal_force_is_refused_with_its_rule() -> None:
    b = Builder()
    b.input("x", 8, 8)
    b.map("exp", (8, 8), op("exp", load("x")))
    b.call("mm", "exp", 8, 8)
    b.map("add", (8, 8), op("add", load("exp"), load("mm")))
    b.output("add", 8, 8)
    gate = Gate({"tcw/0/0/forward/fuse/exp+add": "fuse"})
    fuse(b.graph, gate)
    (refused,) = gate.refused()
    assert "cycle" in refused.refused


def test_what_is_only_unprofitable_can_be_forced() -> None:
    b = Builder()
    b.input("x", 64, 16384)
    b.map("exp", (64, 16384), op("exp", load("x")))
    b.reduce("columns", (64, 16384), "rk", load("exp"))
    b.output("exp", 64, 16384)
    b.output("columns", 16384)
    assert len(fuse(b.graph).groups) == 2
    gate = Gate({"tcw/0/0/forward/fuse/exp+columns": "fuse"})
    assert len(fuse(b.graph, gate).groups) == 1
    assert not gate.refused()


@pytest.mark.parametrize(("machine", "together"), [(CPU, True), (GPU, False)])
@pytest.mark.parametrize("above", [0, 2])
def test_what_lies_beside_rows_is_written_with_them(
    machine: Machine, together: bool, above: int
) -> None:
    """A column at each end of the rows of an image, of which other rows may lie above these."""
    b = Builder()
    b.input("x", 5, 64)
    b.buffer("padded", 5 + above, 66)
    first = 66 * above
    b.store("middle", "padded", (5, 64), load("x"), (Layout((5, 64), (66, 1), first + 1),))
    for name, place in (("left", 0), ("right", 65)):
        b.store(name, "padded", (5,), Const(0.0, F), (Layout((5,), (66,), first + place),))
    b.output("padded", 5 + above, 66)
    assert ({"middle", "left", "right"} in nests(fuse(b.graph, machine=machine))) == together


def test_pieces_of_a_cat_share_a_nest_with_what_makes_them() -> None:
    b = Builder()
    b.buffer("cat", 64, 64)
    for i in range(2):
        b.input(f"x{i}", 64, 32)
        b.map(f"exp{i}", (64, 32), op("exp", load(f"x{i}")))
        view = (Layout((64, 32), (64, 1), 32 * i),)
        b.store(f"piece{i}", "cat", (64, 32), load(f"exp{i}"), view)
    b.output("cat", 64, 64)
    fusion = fuse(b.graph)
    assert nests(fusion) == [{"exp0", "piece0", "exp1", "piece1"}]
    writes = [s for s in only_nest(fusion).statements if isinstance(s, Write)]
    assert [(w.address.strides, w.address.offset, w.ordered) for w in writes] == [
        ((64, 1), 0, False),
        ((64, 1), 32, False),
    ]


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


def rotary() -> Builder:
    """x * c + cat(-second half, first half) * s."""
    shape = (64, 32)
    b = Builder()
    for name in ("x", "c", "s"):
        b.input(name, *shape)
    b.buffer("cat", *shape)
    halves = [(Layout((64, 16), (32, 1), start),) for start in (0, 16)]
    b.store("first", "cat", (64, 16), op("neg", load("x", *halves[1])), halves[0])
    b.store("second", "cat", (64, 16), load("x", *halves[0]), halves[1])
    turned = op("mul", load("cat"), load("s"))
    b.map("add", shape, op("add", op("mul", load("x"), load("c")), turned))
    b.output("add", *shape)
    return b


def test_a_loop_over_a_cat_is_split_at_the_borders_of_its_pieces() -> None:
    gate = Gate()
    fusion = fuse(rotary().graph, gate)
    assert choices(gate, "split") == [(("add", "cat"), "split", "pieces")]
    nest = only_nest(fusion)
    assert [(axis.size, axis.reduced) for axis in nest.axes] == [(64, False), (16, False)]
    assert nest.writes() == ("add",)
    assert nest.reads() == ("x", "c", "s")
    whole = fuse(rotary().graph, Gate({"tcw/0/0/forward/split/add+cat": "whole"}))
    assert len(whole.groups) == 2


def test_the_index_of_a_gather_beside_a_cat_is_split_once() -> None:
    """Rows of an embedding plus a cat: the row numbers are seen through each piece one time."""
    b = Builder()
    b.input("table", 99, 32)
    b.input("x", 64, 16)
    b.input("ids", 64, dtype="int64")
    b.buffer("cat", 64, 32)
    for name, start in (("first", 0), ("second", 16)):
        b.store(name, "cat", (64, 16), load("x"), (Layout((64, 16), (32, 1), start),))
    each = (Layout((64, 32), (1, 0)),)
    rows_of = (Layout((64, 32), (0, 1)),)
    row = Gather("table", rows_of, (IndexTerm(load("ids", *each, dtype="int64"), 99, 32),), F)
    b.map("add", (64, 32), op("add", row, load("cat")))
    b.output("add", 64, 32)
    gate = Gate()
    fusion = fuse(b.graph, gate)
    assert choices(gate, "split") == [(("add", "cat"), "split", "pieces")]
    verify_program(fusion.program)


def test_a_veto_also_stops_splitting() -> None:
    fusion = fuse(rotary().graph, Gate({"tcw/0/0/forward/fuse/first+add": "apart"}))
    assert all(not {"first", "add"} <= group for group in nests(fusion))


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_memory_that_nobody_writes_is_made(dtype: str) -> None:
    graph = Graph("g", nodes=[Buffer("none", dtype, (0, 3))])
    graph.outputs.append(Operand("none", dtype, (0, 3), (3, 1)))
    fusion = fuse(graph)
    verify_program(fusion.program)
    assert [s.buffer for s in only_nest(fusion).statements if isinstance(s, Write)] == ["none"]


class Told:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self.rounds: list[Round] = []

    def tested(self, pair: Pair) -> FusionPair:
        self.pairs.append(pair)
        return FusionPair(
            graph="g", first=pair.first, second=pair.second, round=pair.round, phase="commit"
        )

    def round(self, number: int, round: Round, fused: list[Pair]) -> None:
        self.rounds.append(round)
        assert number == len(self.rounds)
        told = [pair.id for pair in self.pairs if pair.fused and pair.round == number]
        assert not self.pairs or [pair.id for pair in fused] == told

    def known_as(self, nodes: Iterable[str]) -> tuple[str, ...]:
        return tuple(name.upper() for name in nodes)


def test_a_listener_is_told_as_decisions_fall() -> None:
    told, seen = Told(), list[tuple[str, str]]()

    def watch(answer: Ruling) -> None:
        if answer.pair is not None:
            pair = answer.pair()
            seen.append((pair.first, pair.second))
            assert answer.decision.names == seen[-1]
            assert told.pairs[-1].fused == (answer.choice == FUSE)

    gate = Gate(watch=watch)
    fusion = fuse(normalisation().graph, gate, told)
    assert seen == [(pair.first, pair.second) for pair in told.pairs]
    assert told.rounds == fusion.rounds
    assert {pair.id: pair for pair in told.pairs} == {pair.id: pair for pair in fusion.pairs}
    assert all(answer.pair is None for answer in gate.decided)


def test_who_is_asked_sees_both_sides_and_the_nest_that_they_would_become() -> None:
    details: dict[str, Detail] = {}

    def ask(decision: Decision) -> str:
        if decision.detail is not None:
            details[decision.id] = decision.detail()
        return ""

    gate = Gate(ask=ask)
    fusion = fuse(normalisation().graph, gate, Told())
    assert all(one.decision.detail is None for one in gate.decided)
    (text,) = (nest_text(step) for step in fusion.program.steps if isinstance(step, Nest))
    last = [pair for pair in fusion.pairs if pair.fused][-1]
    detail = details[last.id]
    assert detail.first == tuple(name.upper() for name in last.first_group)
    assert detail.second == tuple(name.upper() for name in last.second_group)
    assert detail.if_fused.partition("\n")[2] == text.partition("\n")[2]
    assert "two loop nests" in detail.means


@pytest.mark.parametrize(("machine", "own"), [(CPU, "C++ function"), (GPU, "kernels")])
def test_what_keeping_apart_means_on_each_machine(machine: Machine, own: str) -> None:
    texts: list[str] = []

    def ask(decision: Decision) -> str:
        if decision.detail is not None and decision.kind == FUSE:
            texts.append(decision.detail().means)
        return ""

    fuse(normalisation().graph, Gate(ask=ask), machine=machine)
    assert texts
    assert all(f"{own} of its own;" in text for text in texts)


def sketches(builder: Builder) -> dict[str, Detail]:
    """Id -> the detail of each pair that a rule forbids to fuse, as a person would see it first."""
    details: dict[str, Detail] = {}

    def ask(decision: Decision) -> str:
        if FUSE in decision.forbidden and decision.detail is not None:
            details.setdefault(decision.id, decision.detail())
        return ""

    fuse(builder.graph, Gate(ask=ask))
    return details


def test_a_rejected_pair_shows_the_nest_it_would_be_with_the_read_that_forbids_it() -> None:
    detail = sketches(normalisation())["tcw/0/0/forward/fuse/add+mul"]
    assert detail.sketched
    name, *loops = (line.partition("  # ")[0].rstrip() for line in detail.if_fused.splitlines())
    assert name == "if_fused: add + squares + mul"
    assert loops == [
        "    for i < 64:",
        "        for j < 256:",
        "            add = x[256*i + j] + y[256*i + j]",
        "            add[256*i + j] = add",
        "            squares += add * add",
        "        squares[i] = squares",
        "        for j < 256:",
        "            mul = add[256*i + j] * rsqrt[i]",
        "            ✗ cycle: reads rsqrt",
        "            mul[256*i + j] = mul",
    ]


def test_a_sum_read_in_the_loop_that_makes_it_is_marked() -> None:
    b = Builder()
    b.input("x", 64, 256)
    b.map("exp", (64, 256), op("exp", load("x")))
    b.reduce("columns", (64, 256), "rk", load("exp"))
    b.reduce("sum", (64, 256), "kr", load("exp"))
    b.map("mul", (64, 256), op("mul", load("exp"), load("sum", rows(64, 256))))
    b.map("root", (256,), op("sqrt", load("columns")))
    b.output("mul", 64, 256)
    b.output("root", 256)
    lines = sketches(b)["tcw/0/0/forward/fuse/columns+root"].if_fused.splitlines()
    (mark,) = (place for place, line in enumerate(lines) if "✗" in line)
    assert "sqrt(columns[i])" in lines[mark - 1]
    assert lines[mark].strip() == "✗ finish: reads columns"


def test_where_no_read_is_forbidden_the_loop_that_is_not_shared_is_marked() -> None:
    b = Builder()
    b.input("x", 64, 64)
    b.reduce("sum", (64, 64), "kr", load("x"))
    b.output("sum", 64)
    b.map("exp", (2048,), op("exp", load("x")))
    b.output("exp", 2048)
    lines = sketches(b)["tcw/0/0/forward/fuse/sum+exp"].if_fused.splitlines()
    (mark,) = (place for place, line in enumerate(lines) if "✗" in line)
    assert lines[mark - 1].strip() == "for i < 2048:"
    assert lines[mark].strip() == "✗ domain: 4096 and 2048 elements, rows of 64 kept × 64 reduced"


def test_a_read_of_memory_that_the_other_writes_is_marked() -> None:
    b = Builder()
    b.input("x", 8, 8)
    b.input("y", 8, 8)
    b.store("copy", "x", (8, 8), op("sin", load("y")))
    b.map("after", (8, 8), op("exp", op("add", load("x"), load("y"))))
    b.output("after", 8, 8)
    lines = sketches(b)["tcw/0/0/forward/fuse/copy+after"].if_fused.splitlines()
    (mark,) = (place for place, line in enumerate(lines) if "✗" in line)
    assert "x[" in lines[mark - 1]
    assert lines[mark].strip() == "✗ barrier: reads x"


def twice() -> Builder:
    """exp(x) computed twice, one of them read by a reduction."""
    b = Builder()
    b.input("x", 64, 64)
    b.map("one", (64, 64), op("exp", load("x")))
    b.map("two", (64, 64), op("exp", load("x")))
    b.map("add", (64, 64), op("mul", load("one"), load("x")))
    b.reduce("sum", (64, 64), "kr", load("two"))
    b.output("add", 64, 64)
    b.output("sum", 64)
    return b


def test_a_veto_on_a_duplicate_is_one_on_what_is_left() -> None:
    assert [set(group.names) for group in fuse(twice().graph).groups] == [
        {"one", "two", "add", "sum"}
    ]
    gate = Gate({"tcw/0/0/forward/fuse/two+sum": "apart"})
    for group in fuse(twice().graph, gate).groups:
        assert not {"two", "sum"} <= set(group.names)
    assert not list(gate.unknown())


def test_a_veto_on_two_equal_nodes_keeps_both() -> None:
    gate = Gate({"tcw/0/0/forward/fuse/one+two": "apart"})
    fusion = fuse(twice().graph, gate)
    assert all(not {"one", "two"} <= set(group.names) for group in fusion.groups)
    assert {"one", "two"} <= {name for group in fusion.groups for name in group.names}
    assert not list(gate.unknown())


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
