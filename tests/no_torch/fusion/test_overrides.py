"""Vetoes and forces: which holds, and what is refused with its rule."""

from __future__ import annotations

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.loops.expressions import Const, Gather, IndexTerm, Iota
from tcw.compiler.loops.layouts import Layout
from tests.no_torch.fusion.build import (
    Builder,
    F,
    load,
    nests,
    normalisation,
    op,
)


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
    gate = Gate({f"tcw/{b.graph.name}/fuse/{vetoe}": "apart" for vetoe in vetoes})
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
    b.input("x", 32, 16384)
    b.map("exp", (32, 16384), op("exp", load("x")))
    b.reduce("columns", (32, 16384), "rk", load("exp"))
    b.output("exp", 32, 16384)
    b.output("columns", 16384)
    assert len(fuse(b.graph).groups) == 2
    gate = Gate({"tcw/0/0/forward/fuse/exp+columns": "fuse"})
    assert len(fuse(b.graph, gate).groups) == 1
    assert not gate.refused()


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
