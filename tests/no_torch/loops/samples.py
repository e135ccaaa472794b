"""Small graphs and programs of the loop IR, written by hand."""

from __future__ import annotations

from tcw.compiler.loops.expressions import Address, Const, Expression, Load, Local, Op, Read
from tcw.compiler.loops.graph import Graph, Input, Map, Operand, Reduce
from tcw.compiler.loops.layouts import Layout, Shape, row_major
from tcw.compiler.loops.nest import Axis, Let, Memory, Nest, Program, Reduction, Write
from tcw.compiler.loops.sizes import Size, multiply, product

ROWS = Layout((3, 5), (1, 0))
"""Index of a (3, 5) domain -> its row."""


def op(name: str, *args: Expression, dtype: str = "float32") -> Op:
    return Op(name, args, dtype)


def tensor(value: str, shape: Shape, dtype: str = "float32") -> Operand:
    return Operand(value, dtype, shape, row_major(shape).strides)


def source(name: str, shape: Shape, dtype: str = "float32") -> Input:
    return Input(name, dtype, shape, row_major(shape).strides)


def softmax_graph(rows: Size = 3, columns: Size = 5) -> Graph:
    """softmax(x, 1) of a (rows, columns) tensor."""
    domain, of_row = (rows, columns), (Layout((rows, columns), (1, 0)),)
    x = Load("x", (), "float32")
    exp = op("exp", op("sub", x, Load("amax", of_row, "float32")))
    div = op("div", Load("exp", (), "float32"), Load("sum_1", of_row, "float32"))
    return Graph(
        "softmax",
        [
            source("x", domain),
            Reduce("amax", "float32", "max", domain, (False, True), x, ("amax",)),
            Map("exp", "float32", domain, exp, ("sub", "exp")),
            Reduce(
                "sum_1",
                "float32",
                "sum",
                domain,
                (False, True),
                Load("exp", (), "float32"),
                ("sum_1",),
            ),
            Map("div", "float32", domain, div, ("div",)),
        ],
        ["x"],
        [tensor("div", domain)],
    )


def softmax_nest(rows: Size = 3, columns: Size = 5) -> Nest:
    """The same as one nest, with the column sums of the result as a rider."""
    at = Address((columns, 1))
    x, amax = Read("x", at, "float32"), Local("amax", "float32")
    return Nest(
        "softmax",
        (Axis(rows), Axis(columns, reduced=True)),
        (
            Reduction("amax", "float32", "max", x, (1,), (0,), ("amax",)),
            Let("exp", "float32", op("exp", op("sub", x, amax)), (0, 1), ("sub", "exp")),
            Reduction("sum_1", "float32", "sum", Local("exp", "float32"), (1,), (0,), ("sum_1",)),
            Let(
                "div",
                "float32",
                op("div", Local("exp", "float32"), Local("sum_1", "float32")),
                (0, 1),
                ("div",),
            ),
            Write("div", "float32", at, Local("div", "float32"), (0, 1)),
            Reduction("column", "float32", "sum", Local("div", "float32"), (0,), (1,)),
            Write("column", "float32", Address((0, 1)), Local("column", "float32"), (1,)),
        ),
        "softmax",
    )


def memory(name: str, shape: Shape, dtype: str = "float32") -> Memory:
    return Memory(name, dtype, shape, product(shape))


def softmax_program(rows: Size = 3, columns: Size = 5) -> Program:
    graph = softmax_graph(rows, columns)
    graph.outputs.append(tensor("column", (columns,)))
    memories = [memory("div", (rows, columns)), memory("column", (columns,))]
    return Program(graph, (softmax_nest(rows, columns),), {m.name: m for m in memories})


def twice(name: str, value: str, domain: Shape) -> Map:
    expression = op("mul", Load(value, (), "float32"), Const(2.0, "float32"))
    return Map(name, "float32", domain, expression, (name,))


def pointwise_nest(name: str, reads: tuple[str, ...], writes: str, size: Size) -> Nest:
    """writes[i] = sum of reads[i] + 1."""
    at = Address((1,))
    total: Expression = Const(1.0, "float32")
    for value in reads:
        total = op("add", total, Read(value, at, "float32"))
    write = Write(writes, "float32", at, total, (0,), origins=(name,))
    return Nest(name, (Axis(size),), (write,), name)


def bytes_of(size: Size) -> Size:
    return multiply(size, 4)
