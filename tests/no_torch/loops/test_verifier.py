"""Each rule of the verifier, broken once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tcw.compiler.loops.expressions import (
    Address,
    Const,
    Expression,
    Gather,
    IndexTerm,
    Load,
    Local,
    Op,
    Read,
)
from tcw.compiler.loops.graph import Buffer, Call, Graph, Input, Map, Operand, Reduce, Result, Store
from tcw.compiler.loops.layouts import Layout
from tcw.compiler.loops.nest import Nest, Reduction, Write
from tcw.compiler.loops.sizes import symbol
from tcw.compiler.loops.verifier import Malformed, verify_graph, verify_program
from tests.no_torch.loops.samples import (
    op,
    pointwise_nest,
    softmax_graph,
    softmax_nest,
    softmax_program,
    source,
    tensor,
    twice,
)

X = Load("x", (), "float32")


def graph(*nodes: Any, outputs: tuple[Any, ...] = ()) -> Graph:
    return Graph("test", [source("x", (3, 5)), *nodes], ["x"], list(outputs))


def one(expression: Expression, dtype: str = "float32") -> Graph:
    return graph(Map("y", dtype, (3, 5), expression))


def gather(index: Expression) -> Graph:
    return one(Gather("x", (Layout((15,), (0,)),), (IndexTerm(index, 16, 1),), "float32"))


GRAPHS: list[tuple[str, Graph]] = [
    ("is not defined before it is used", one(Load("z", (), "float32"))),
    ("the name x is taken", graph(twice("x", "x", (15,)))),
    ("loaded as float64", one(Load("x", (), "float64"), "float64")),
    ("takes 2 arguments, got 1", one(op("add", X))),
    ("no operator is called plus", one(op("plus", X, X))),
    ("operators do not promote", one(op("add", X, Const(1, "int64")))),
    ("returns bool, not float32", one(op("lt", X, X))),
    ("compares float32 with int64", one(op("lt", X, Const(1, "int64"), dtype="bool"), "bool")),
    ("where expects a bool", one(op("where", X, X, X))),
    ("not defined for float32", one(op("bitwise_and", X, X))),
    ("exp is not defined for int64", one(op("exp", Const(1, "int64"), dtype="int64"), "int64")),
    ("the constant 0.5 is not of dtype int64", one(Const(0.5, "int64"), "int64")),
    ("loops do not support dtype complex64", one(Const(1, "complex64"), "complex64")),
    ("its expression float64", one(Const(1.0, "float64"))),
    ("occurs only in nests", one(Local("x", "float32"))),
    ("maps 14 indices of a domain of 15", one(Load("x", (Layout((14,), (1,)),), "float32"))),
    ("indices 1 to 15 in a space of 15", one(Load("x", (Layout((15,), (1,), 1),), "float32"))),
    ("indices -14 to 0", one(Load("x", (Layout((15,), (-1,)),), "float32"))),
    ("indices 0 to 15 in a space of 15", gather(Const(0, "int64"))),
    ("an index has dtype int32", gather(Const(0, "int32"))),
    (
        "s7 is defined by neither an argument nor a formula",
        graph(Map("y", "float32", (symbol("s7"),), X)),
    ),
    (
        "each digit is kept or reduced",
        graph(Reduce("y", "float32", "sum", (3, 5), (True,), X)),
    ),
    ("argmax returns int64", graph(Reduce("y", "float32", "argmax", (15,), (True,), X))),
    ("is neither a buffer nor an input", graph(Store("s", "y", "float32", (15,), (), X))),
    (
        "indices 0 to 14 in a space of 14",
        graph(Buffer("b", "float32", (14,)), Store("s", "b", "float32", (15,), (), X)),
    ),
    ("operand of x: indices 0 to 15", graph(outputs=(Operand("x", "float32", (2,), (15,)),))),
    (
        "is not a namespace.name.overload",
        graph(Call("c", "mm", (), results=(Result("r", "float32", (1,), (1,)),))),
    ),
    ("is not passed exactly once", Graph("test", [source("x", (3,))], [])),
]


@pytest.mark.parametrize(("words", "broken"), GRAPHS)
def test_graphs(words: str, broken: Graph) -> None:
    with pytest.raises(Malformed, match=words):
        verify_graph(broken)


def test_bounds_are_checked_for_the_sizes_that_are_compiled_for() -> None:
    size = symbol("s0")
    made = Graph(
        "test",
        [
            Input("x", "float32", (size,), (1,)),
            Map("y", "float32", (6,), Load("x", (Layout((6,), (1,)),), "float32")),
        ],
        ["s0", "x"],
    )
    verify_graph(made)
    made.hints["s0"] = 5
    with pytest.raises(Malformed, match="indices 0 to 5 in a space of 5"):
        verify_graph(made)


def change(place: int, **fields: Any) -> Callable[[Nest], Nest]:
    def changed(nest: Nest) -> Nest:
        statements = list(nest.statements)
        statements[place] = replace(statements[place], **fields)
        return replace(nest, statements=tuple(statements))

    return changed


def add(*statements: Any) -> Callable[[Nest], Nest]:
    return lambda nest: replace(nest, statements=(*nest.statements, *statements))


AT = Address((5, 1))


def write(expression: Expression, address: Address = AT) -> Write:
    return Write("div", "float32", address, expression, (0, 1))


NESTS: list[tuple[str, Callable[[Nest], Nest]]] = [
    ("writes nothing", lambda nest: replace(nest, statements=nest.statements[:4])),
    ("is not an earlier statement", change(1, expression=Local("sum_1", "float32"))),
    ("amax is float32, not float64", change(1, expression=Local("amax", "float64"))),
    ("varies over axes \\(0, 1\\), this runs over \\(0,\\)", change(3, axes=(0,))),
    ("an axis occurs twice", change(0, over=(0, 1))),
    ("there are no axes", change(1, axes=(0, 1, 2))),
    ("an address varies over axis 0", change(0, axes=(), over=(1,))),
    ("an address needs one stride per axis", add(write(Const(0.0, "float32"), Address((1,))))),
    ("indices 0 to 16", add(write(Const(0.0, "float32"), Address((6, 1))))),
    ("hit the same element", add(write(Const(0.0, "float32"), Address((0, 1))))),
    (
        "finished only after the nest",
        add(write(op("add", Local("column", "float32"), Local("div", "float32")))),
    ),
    (
        "finished only after the nest",
        add(Reduction("r", "float32", "max", Local("column", "float32"), (0,), (1,))),
    ),
    ("is not in memory here", add(write(Read("unknown", Address((5, 1)), "float32")))),
    ("which it writes at other addresses", add(write(Read("div", Address((5, -1), 4), "float32")))),
    ("occurs only in value graphs", add(write(X))),
    ("argmax returns int64", change(0, op="argmax")),
    ("exp_sum returns a wide float", change(0, op="exp_sum", dtype="bfloat16")),
]


@pytest.mark.parametrize(("words", "broken"), NESTS)
def test_nests(words: str, broken: Callable[[Nest], Nest]) -> None:
    program = softmax_program()
    verify_program(program)
    with pytest.raises(Malformed, match=words):
        verify_program(replace(program, steps=[broken(softmax_nest())]))


def test_programs_write_before_they_read() -> None:
    program = softmax_program()
    verify_program(program)
    early = pointwise_nest("early", ("div",), "column", 5)
    program.steps = (early, *program.steps)
    with pytest.raises(Malformed, match="div is not in memory here"):
        verify_program(program)


def test_programs_write_their_outputs() -> None:
    program = softmax_program()
    program.graph.outputs.append(tensor("amax", (3,)))
    with pytest.raises(Malformed, match="amax is not defined"):
        verify_program(program)


def test_what_is_right_passes() -> None:
    verify_graph(softmax_graph())
    verify_graph(softmax_graph(0, 5))
    verify_graph(one(Op("convert", (op("lt", X, X, dtype="bool"),), "float32")))
