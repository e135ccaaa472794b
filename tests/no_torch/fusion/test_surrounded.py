"""Elements that are computed where an index or a border of zeros picks them."""

from __future__ import annotations

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.loops.expressions import Const, Gather, IndexTerm, Iota, ReadIndexed
from tcw.compiler.loops.layouts import Layout
from tcw.compiler.loops.nest import expressions
from tests.no_torch.fusion.build import Builder, F, choices, load, only_nest, op


def bordered(b: Builder, name: str, source: str, start: int) -> None:
    """Rows of 32 elements, of which 30 are the source's and the others zero."""
    index = Iota((Layout((64, 32), (0, 1), -start),))
    term = IndexTerm(index, 30, 1, wraps=False, checked=False)
    b.map(name, (64, 32), Gather(source, (Layout((64, 32), (30, 0)),), (term,), F, 0))


def test_what_a_border_of_zeros_surrounds_is_computed_where_it_is_read() -> None:
    b = Builder()
    b.input("x", 64, 30)
    b.map("half", (64, 30), op("mul", load("x"), Const(0.5, F)))
    b.map("neg", (64, 30), op("neg", load("half")))
    bordered(b, "one", "half", 0)
    bordered(b, "two", "neg", 2)
    b.map("add", (64, 32), op("add", load("one"), load("two")))
    b.output("add", 64, 32)
    fusion = fuse(b.graph)
    assert set(fusion.program.memories) == {"add"}
    borders = [
        str(part.otherwise)
        for statement in only_nest(fusion).statements
        for part in expressions(statement)
        if isinstance(part, ReadIndexed)
    ]
    assert sorted(borders) == ["-0.0", "0.0"], "the sign of a zero is eager's"


def test_a_border_stays_around_what_is_repeated_inside() -> None:
    b = Builder()
    b.input("x", 64)
    b.map("half", (64, 30), op("mul", load("x", Layout((64, 30), (1, 0))), Const(0.5, F)))
    bordered(b, "add", "half", 1)
    b.output("add", 64, 32)
    assert set(fuse(b.graph).program.memories) == {"half", "add"}


def test_a_border_is_read_from_the_last_value_that_must_be_kept() -> None:
    b = Builder()
    b.input("x", 64, 30)
    b.input("y", 64, 30)
    b.map("mul", (64, 30), op("mul", load("x"), load("y")))
    b.map("neg", (64, 30), op("neg", load("mul")))
    bordered(b, "one", "mul", 0)
    bordered(b, "two", "neg", 2)
    b.map("add", (64, 32), op("add", load("one"), load("two")))
    b.output("add", 64, 32)
    assert set(fuse(b.graph).program.memories) == {"mul", "add"}


def test_a_part_of_a_value_that_others_read_is_not_copied_for_a_border() -> None:
    b = Builder()
    b.input("x", 64, 32)
    b.input("y", 64, 32)
    b.map("mul", (64, 32), op("mul", load("x"), load("y")))
    b.map("part", (64, 30), load("mul", Layout((64, 30), (32, 1), 2)))
    bordered(b, "one", "part", 0)
    b.map("add", (64, 32), op("add", load("one"), load("mul")))
    b.output("add", 64, 32)
    assert set(fuse(b.graph).program.memories) == {"mul", "add"}


def test_what_is_no_zero_in_a_border_of_zeros_is_kept() -> None:
    b = Builder()
    b.input("x", 64, 30)
    b.map("exp", (64, 30), op("exp", load("x")))
    bordered(b, "add", "exp", 1)
    b.output("add", 64, 32)
    assert set(fuse(b.graph).program.memories) == {"exp", "add"}


def test_elements_that_cost_less_than_their_memory_are_computed_at_any_index() -> None:
    b = Builder()
    b.input("x", 64, 30, dtype="bfloat16")
    b.input("i", 64, dtype="int64")
    b.map("wide", (64, 30), op("convert", load("x", dtype="bfloat16")))
    term = IndexTerm(load("i", Layout((64, 30), (1, 0)), dtype="int64"), 64, 30)
    b.map("one", (64, 30), Gather("wide", (Layout((64, 30), (0, 1)),), (term,), F))
    b.output("one", 64, 30)
    assert set(fuse(b.graph).program.memories) == {"one"}
    b.output("wide", 64, 30)
    gate = Gate()
    fuse(b.graph, gate)
    assert choices(gate, "column") == [], "it is in memory in any case"
