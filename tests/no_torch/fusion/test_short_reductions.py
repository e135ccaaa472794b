"""Reductions of a few elements each become maps, which share a nest with their readers."""

from __future__ import annotations

import pytest

from tcw.compiler.fusion.fuse import Fusion, fuse
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.loops.layouts import Layout
from tcw.compiler.loops.nest import Nest, Reduction
from tests.no_torch.fusion.build import Builder, load, op, rows


def both(few: int, marks: str = "rk") -> Builder:
    """The largest elements of columns or rows plus their sums."""
    b = Builder()
    shape = (few, 4000) if marks == "rk" else (4000, few)
    b.input("x", *shape)
    b.reduce("amax", shape, marks, load("x"), "max")
    b.reduce("total", shape, marks, load("x"))
    b.map("add", (4000,), op("add", load("amax"), load("total")))
    b.output("add", 4000)
    return b


def reductions(fusion: Fusion) -> int:
    nests = [step for step in fusion.program.steps if isinstance(step, Nest)]
    return sum(isinstance(s, Reduction) for nest in nests for s in nest.statements)


@pytest.mark.parametrize(("few", "marks"), [(2, "rk"), (8, "rk"), (3, "kr"), (7, "kr")])
def test_short_reductions_fuse_with_their_reader(few: int, marks: str) -> None:
    fusion = fuse(both(few, marks).graph)
    assert len(fusion.program.steps) == 1
    assert reductions(fusion) == 0


@pytest.mark.parametrize(("few", "marks"), [(9, "rk"), (8, "kr")])
def test_longer_ones_stay(few: int, marks: str) -> None:
    assert reductions(fuse(both(few, marks).graph)) == 2
    assert reductions(fuse(both(3).graph, machine=GPU)) == 2


def test_a_value_that_each_element_reads_is_reduced_once() -> None:
    b = Builder()
    b.input("x", 4000, 3)
    b.reduce("total", (4000, 3), "kr", load("x"))
    b.map("div", (4000, 3), op("div", load("x"), load("total", rows(4000, 3))))
    b.output("div", 4000, 3)
    assert reductions(fuse(b.graph)) == 1


def test_elements_that_a_longer_loop_reads_are_reduced_there() -> None:
    b = Builder()
    b.input("x", 3, 4000)
    b.map("double", (3, 4000), op("add", load("x"), load("x")))
    b.reduce("total", (3, 4000), "rk", load("x"))
    b.output("double", 3, 4000)
    b.output("total", 4000)
    assert reductions(fuse(b.graph)) == 1


@pytest.mark.parametrize(("few", "expected"), [(6, 1), (16, 0)])
def test_rows_that_an_operand_cuts_short_stay(few: int, expected: int) -> None:
    """`(x * weight).sum(-1)` of 4000 x `few` x 3, with a weight for each of `few` x 3: lanes of
    results would be that many rows long, or lie that many rows apart."""
    b = Builder()
    shape = (4000, few, 3)
    b.input("x", *shape)
    b.input("weight", few, 3)
    weight = load("weight", Layout((4000, few * 3), (0, 1)))
    b.reduce("total", shape, "kkr", op("mul", load("x"), weight))
    b.output("total", 4000, few)
    assert reductions(fuse(b.graph)) == expected
