"""Loops over the pieces of one buffer: shared, and split at the borders."""

from __future__ import annotations

import pytest

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.weights import CPU, GPU, Machine
from tcw.compiler.loops.expressions import Const, Gather, IndexTerm
from tcw.compiler.loops.layouts import Layout
from tcw.compiler.loops.nest import Write
from tcw.compiler.loops.verifier import verify_program
from tests.no_torch.fusion.build import (
    Builder,
    F,
    choices,
    load,
    nests,
    only_nest,
    op,
)


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
