"""Each rule, where it allows and where it refuses."""

from __future__ import annotations

import pytest

from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.rules import RULES
from tcw.compiler.fusion.weights import CPU, GPU, Machine
from tcw.compiler.loops.expressions import Const, Gather, IndexTerm, Iota
from tcw.compiler.loops.graph import Scan
from tcw.compiler.loops.layouts import Layout, permute
from tcw.compiler.loops.sizes import symbol
from tests.no_torch.fusion.build import Builder, F, columns, load, nests, op, rows, rule, together


def pointwise(first: tuple[int, ...], second: tuple[int, ...]) -> Builder:
    """exp over one domain, from memory; tanh of it over the other."""
    b = Builder()
    b.input("x", *first)
    b.map("exp", first, op("exp", load("x")))
    b.map("tanh", second, op("tanh", load("exp")))
    b.output("exp", *first)
    b.output("tanh", *second)
    return b


def test_domain() -> None:
    assert together(pointwise((4, 128, 256), (512, 256)), "exp", "tanh")
    b = pointwise((8, 8), (8, 8))
    b.input("y", 100)
    b.map("other", (100,), op("exp", load("y")))
    b.output("other", 100)
    assert not together(b, "exp", "other")


def test_domain_with_a_symbolic_size() -> None:
    s0 = symbol("s0")
    b = Builder()
    b.input("x", 4)
    b.map("exp", (s0, 8), op("exp", op("convert", Iota(()), dtype=F)))
    b.reduce("sum", (s0, 8), "kr", load("exp"))
    whole = Layout((s0, 8), (1, 0))
    b.map("div", (s0, 8), op("div", load("exp"), load("sum", whole)))
    b.output("div", 8, 8)
    b.output("exp", 8, 8)
    assert together(b, "exp", "sum", "div")


def softmax(shape: tuple[int, int], reduced: str, view: Layout, again: str = "") -> Builder:
    b = Builder()
    b.input("x", *shape)
    b.reduce("amax", shape, reduced, load("x"), "max")
    b.map("exp", shape, op("exp", op("sub", load("x"), load("amax", view))))
    b.reduce("sum", shape, again or reduced, load("exp"))
    if not again:
        b.map("div", shape, op("div", load("exp"), load("sum", view)))
        b.output("div", *shape)
    b.output("exp", *shape)
    b.output("sum", 1)
    return b


def test_reduction() -> None:
    same = softmax((64, 128), "kr", rows(64, 128))
    assert together(same, "amax", "exp", "sum", "div")
    b = Builder()
    b.input("x", 4, 8, 16)
    b.reduce("inner", (4, 8, 16), "kkr", load("x"))
    b.reduce("outer", (4, 8, 16), "krr", load("x"))
    b.output("inner", 4, 8)
    b.output("outer", 4)
    assert rule(b, "inner", "outer") == "reduction"


def test_strided_rows() -> None:
    b = softmax((64, 128), "rk", columns(64, 128))
    assert together(b, "amax", "exp", "sum", "div")
    narrow = softmax((64, 4), "rk", columns(64, 4))
    assert not together(narrow, "amax", "exp")
    assert rule(narrow, "amax", "exp") == "strided rows"
    long = softmax((1 << 16, 64), "rk", columns(1 << 16, 64))
    assert rule(long, "amax", "exp") == "strided rows"


def test_access() -> None:
    shape = (16, 32)
    b = Builder()
    b.input("x", *shape)
    b.map("exp", shape, op("exp", load("x")))
    b.map("straight", shape, op("tanh", load("exp")))
    b.map("turned", (32, 16), op("tanh", load("exp", permute(shape, (1, 0)))))
    b.output("straight", *shape)
    b.output("turned", 32, 16)
    assert together(b, "exp", "straight")
    assert rule(b, "exp", "turned") == "access"


def test_a_map_takes_the_order_of_its_only_reader() -> None:
    b = Builder()
    b.input("x", 16, 32)
    b.map("exp", (16, 32), op("exp", load("x")))
    b.map("turned", (32, 16), op("tanh", load("exp", permute((16, 32), (1, 0)))))
    b.output("turned", 32, 16)
    assert together(b, "exp", "turned")


def rider(kept: int, rows_: int = 64) -> Builder:
    shape = (rows_, kept)
    b = Builder()
    b.input("x", *shape)
    b.map("exp", shape, op("exp", load("x")))
    b.reduce("columns", shape, "rk", load("exp"))
    b.output("exp", *shape)
    b.output("columns", kept)
    return b


def test_rider() -> None:
    assert together(rider(256), "exp", "columns")
    b = rider(256)
    b.reduce("greatest", (64, 256), "kr", load("exp"), "max")
    b.output("greatest", 64)
    assert together(b, "exp", "columns", "greatest")
    b = Builder()
    b.input("x", 4, 8, 16)
    b.map("exp", (4, 8, 16), op("exp", load("x")))
    b.reduce("rows", (4, 8, 16), "kkr", load("exp"))
    b.reduce("odd", (4, 8, 16), "rkr", load("exp"))
    b.output("rows", 4, 8)
    b.output("odd", 8)
    assert rule(b, "exp", "odd") in ("rider", "reduction")


def test_working_set() -> None:
    """64 KB of accumulators are worth it for 64 rows; 256 KB never are."""
    assert together(rider(16384), "exp", "columns")
    assert rule(rider(16384, 32), "exp", "columns") == "working set"
    assert rule(rider(65536), "exp", "columns") == "working set"


def test_finish() -> None:
    for rows_, joined in ((64, True), (4096, False)):
        b = rider(256, rows_)
        b.map("scaled", (256,), op("tanh", load("columns")))
        b.output("scaled", 256)
        assert together(b, "exp", "columns")
        assert together(b, "columns", "scaled") == joined
        if not joined:
            assert rule(b, "columns", "scaled") == "finish"


def test_columns_that_come_back_make_rows() -> None:
    shape = (512, 256)
    b = Builder()
    b.input("x", *shape)
    b.reduce("sum", shape, "rk", load("x"))
    b.map("mean", (256,), op("mul", load("sum"), Const(1 / 512, F)))
    b.map("sub", shape, op("sub", load("x"), load("mean", columns(*shape))))
    b.output("sub", *shape)
    assert together(b, "sum", "mean", "sub")


def gathering(index: str) -> Builder:
    b = Builder()
    b.input("x", 64)
    b.input("i", 64, dtype="int64")
    b.map("exp", (64,), op("exp", load("x")))
    b.output("exp", 64)
    term = IndexTerm(load("i", dtype="int64"), 64, 1)
    b.map("gather", (64,), op("tanh", Gather(index, (Layout((64,), (0,)),), (term,), F)))
    b.output("gather", 64)
    return b


def test_gather() -> None:
    assert together(gathering("x"), "exp", "gather")
    assert rule(gathering("exp"), "exp", "gather") == "gather"


@pytest.mark.parametrize("digit", [0, 1])
def test_scan(digit: int) -> None:
    """A loop may hold scans along any digit, if all of them run along the same."""
    b = Builder()
    b.input("x", 16, 32)
    b.map("exp", (16, 32), op("exp", load("x")))
    for name, along, value in (("scan", digit, "exp"), ("other", 1 - digit, "scan")):
        b.graph.nodes.append(Scan(name, F, "sum", (16, 32), along, load(value), False, (name,)))
        b.output(name, 16, 32)
    assert together(b, "exp", "scan")
    assert not together(b, "scan", "other")
    assert rule(b, "scan", "other") == "reduction"


def mutation(view: Layout | None) -> Builder:
    """tanh(x), then x = sin(y): does the loop that reads x write it?"""
    b = Builder()
    b.input("x", 8, 8)
    b.input("y", 8, 8)
    b.map("tanh", (8, 8), op("tanh", op("add", load("x", *([view] if view else [])), load("y"))))
    b.store("copy", "x", (8, 8), op("sin", load("y")))
    b.output("tanh", 8, 8)
    return b


def test_barrier() -> None:
    assert together(mutation(None), "tanh", "copy")
    turned = mutation(permute((8, 8), (1, 0)))
    assert rule(turned, "tanh", "copy") == "barrier"
    b = mutation(None)
    b.map("after", (8, 8), op("exp", load("x")))
    b.output("after", 8, 8)
    assert not together(b, "copy", "after")


@pytest.mark.parametrize("view", [permute((8, 8), (1, 0)), columns(8, 8)], ids=["once", "again"])
def test_barrier_of_what_is_written_again_and_again(view: Layout) -> None:
    """Each element is read before it is written, but its other positions read the new value."""
    b = Builder()
    b.input("x", 8, 8)
    b.input("y", 8, 8)
    b.map("tanh", (8, 8), op("tanh", op("add", load("x", view), load("y"))))
    b.store("copy", "x", (8, 8), op("sin", load("y")), (view,))
    b.output("tanh", 8, 8)
    if view == columns(8, 8):
        assert rule(b, "tanh", "copy") == "barrier"
    else:
        assert together(b, "tanh", "copy")


def test_scatter() -> None:
    term = IndexTerm(load("i", dtype="int64"), 64, 1)
    zero = (Layout((512,), (0,)),)
    for heavy in (False, True):
        b = Builder()
        b.input("x", 512)
        b.input("i", 512, dtype="int64")
        b.buffer("found", 64)
        b.store("fill", "found", (64,), Const(0.0, F))
        value = op("neg", load("x"))
        for _ in range(6 if heavy else 0):
            value = op("exp", value)
        b.map("made", (512,), value)
        b.output("made", 512)
        b.store("hit", "found", (512,), load("made"), zero, (term,))
        b.output("found", 64)
        assert together(b, "made", "hit") != heavy
        if heavy:
            assert rule(b, "made", "hit") == "scatter"


def test_cycle() -> None:
    b = Builder()
    b.input("x", 32, 32)
    b.map("exp", (32, 32), op("exp", load("x")))
    b.call("mm", "exp", 32, 32)
    b.map("add", (32, 32), op("add", load("exp"), load("mm")))
    b.output("add", 32, 32)
    assert rule(b, "exp", "add") == "cycle"
    (pair,) = (one for one in fuse(b.graph).pairs if one.rule == "cycle")
    assert pair.decision.between == ("mm_call",)


def test_pointers() -> None:
    b = Builder()
    for i in range(50):
        b.input(f"x{i}", 128)
        b.map(f"m{i}", (128,), op("exp", load(f"x{i}")))
        b.output(f"m{i}", 128)
    fusion = fuse(b.graph)
    assert 2 <= len(fusion.groups) <= 4
    assert all(len(group.buffers) <= 64 for group in fusion.groups)
    assert "pointers" in {pair.rule for pair in fusion.pairs}


def test_too_little() -> None:
    for shared, joined in ((64, False), (1 << 16, True)):
        b = Builder()
        b.input("s", shared)
        for name in ("one", "two"):
            b.input(f"{name}_x", 1024, 1024)
            view = Layout((1024 * 1024 // shared, shared), (0, 1))
            value = op("add", load(f"{name}_x"), load("s", view))
            b.map(name, (1024, 1024), op("exp", value))
            b.output(name, 1024, 1024)
        if joined:
            b.map("three", (1024, 1024), op("mul", load("one_x"), load("two_x")))
            b.output("three", 1024, 1024)
            assert together(b, "one", "three")
        else:
            assert rule(b, "one", "two") == "too little"


def test_recomputed() -> None:
    b = Builder()
    b.input("x", 64, 128)
    b.input("w", 128)
    b.map("heavy", (128,), op("exp", op("exp", op("exp", load("w")))))
    b.output("heavy", 128)
    b.map("mul", (64, 128), op("mul", load("x"), load("heavy", columns(64, 128))))
    b.output("mul", 64, 128)
    assert rule(b, "heavy", "mul") == "recomputed"


def test_empty() -> None:
    b = Builder()
    b.input("x", 0, 8)
    b.map("exp", (0, 8), op("exp", load("x")))
    b.output("exp", 0, 8)
    b.map("tanh", (0, 8), op("tanh", load("exp")))
    b.output("tanh", 0, 8)
    assert rule(b, "exp", "tanh") == "empty"


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_has_words(name: str) -> None:
    assert RULES[name].strip()


def chained(shape: tuple[int, int], back: bool = True) -> Builder:
    """A softmax of rows and the greatest of its columns; `back`: as the start of their softmax."""
    b = Builder()
    b.input("x", *shape)
    b.reduce("amax", shape, "kr", load("x"), "max")
    b.map("exp", shape, op("exp", op("sub", load("x"), load("amax", rows(*shape)))))
    b.reduce("sum", shape, "kr", load("exp"))
    b.map("div", shape, op("div", load("exp"), load("sum", rows(*shape))))
    b.reduce("top", shape, "rk", load("div"), "max")
    if back:
        b.map("power", shape, op("exp", op("sub", load("div"), load("top", columns(*shape)))))
        b.reduce("total", shape, "rk", load("power"))
        b.map("end", shape, op("div", load("power"), load("total", columns(*shape))))
        b.output("end", *shape)
    b.output("top", shape[1])
    return b


@pytest.mark.parametrize(
    ("machine", "shape", "back", "rides"),
    [
        (GPU, (64, 64), True, False),
        (GPU, (64, 64), False, True),  # nothing reads the elements again
        (GPU, (4096, 64), True, True),  # it takes longer to read them again
        (CPU, (64, 64), True, True),  # no kernel finishes it
    ],
)
def test_a_small_rider_that_takes_a_kernel(
    machine: Machine, shape: tuple[int, int], back: bool, rides: bool
) -> None:
    found = nests(fuse(chained(shape, back).graph, machine=machine))
    assert any({"div", "top"} <= names for names in found) == rides
    assert any({"top", "end"} <= names for names in found) == (not rides)


def transposed_beside_a_sum(rows: int, columns: int) -> Builder:
    """Column sums of a product with a transposed matrix, and the transpose of the other factor."""
    b = Builder()
    b.input("g", rows, columns)
    b.input("x", columns, rows)
    across = Layout((rows, columns), (1, rows))
    b.reduce("sum", (rows, columns), "rk", op("mul", load("g"), load("x", across)))
    back = Layout((columns, rows), (1, columns))
    b.map("clone", (columns, rows), op("neg", load("g", back)))
    b.output("sum", columns)
    b.output("clone", columns, rows)
    return b


def test_tiles() -> None:
    """The flat domains of 1024 x 64 and 64 x 1024 have three digits in common."""
    assert together(transposed_beside_a_sum(256, 256), "sum", "clone")
    assert rule(transposed_beside_a_sum(1024, 64), "sum", "clone") == "tiles"
    assert together(transposed_beside_a_sum(64, 16), "sum", "clone"), "too small to matter"
