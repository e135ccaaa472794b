"""The printer's output; people read the goldens, as docs/compiler.md shows such text."""

from __future__ import annotations

import pytest

from tcw.compiler.loops.expressions import Address, Const, Gather, IndexTerm, Load, Local, Op, Read
from tcw.compiler.loops.graph import Buffer, Call, Graph, Map, Result, Scan, Store
from tcw.compiler.loops.layouts import Layout, flip, row_major
from tcw.compiler.loops.nest import Axis, Let, Nest, Reduction, Write
from tcw.compiler.loops.printer import graph_text, nest_text, program_text
from tcw.compiler.loops.printer.print_addresses import formula
from tcw.compiler.loops.printer.print_expressions import expression_text
from tcw.compiler.loops.sizes import add, multiply, symbol
from tests.conftest import Golden
from tests.no_torch.loops.samples import op, softmax_graph, softmax_program, source, tensor

A, B, C = (Local(name, "float32") for name in "abc")


def test_softmax(golden: Golden) -> None:
    program = softmax_program()
    golden("loops/softmax.txt", f"{graph_text(program.graph)}\n{program_text(program)}")


def test_every_kind_of_node(golden: Golden) -> None:
    x, index = Load("x", (), "float32"), Load("index", (Layout((4, 6), (1, 0)),), "int64")
    size = symbol("s0")
    call = Call(
        "sort",
        "aten.sort.default",
        (tensor("flipped", (4, 6)), 1, True, None, (1, size)),
        results=(Result("values", "float32", (4, 6), (1, 4)), None),
        single=False,
        reason="no lowering for aten.sort",
        origins=("sort",),
    )
    graph = Graph(
        "0/0/forward",
        [
            source("x", (4, 6)),
            source("index", (4,), "int64"),
            Map("flipped", "float32", (4, 6), Load("x", (flip((4, 6), (0,)),), "float32")),
            Map("odd", "float32", (4, 6), Load("x", (Layout((6, 4), (1, 6)),), "float32")),
            Map(
                "row",
                "float32",
                (4, 6),
                Gather("x", (Layout((4, 6), (0, 1)),), (IndexTerm(index, 4, 6),), "float32"),
                ("embedding",),
            ),
            Scan("sums", "float32", "sum", (4, 6), 1, x, reverse=True),
            Buffer("cat", "float32", (4, 12)),
            Store("piece", "cat", "float32", (4, 6), (Layout((4, 6), (12, 1), 6),), x),
            Store(
                "scattered",
                "x",
                "float32",
                (4, 6),
                (Layout((4, 6), (0, 1)),),
                x,
                (IndexTerm(index, 4, 6),),
                "add",
            ),
            call,
        ],
        ["s0", "x", "index"],
        [tensor("cat", (4, 12)), size, 2.5, None],
        symbols={"z0": "s0//2"},
        hints={"s0": 4},
    )
    golden("loops/nodes.txt", graph_text(graph))


def test_a_nest_with_invariants_and_division(golden: Golden) -> None:
    size = symbol("s0")
    at = Address((multiply(size, 6), 6, 1))
    rows = (Axis(8), Axis(size), Axis(6, reduced=True))
    statements = (
        Let("scale", "float32", op("exp", Read("g", Address((0, 0, 1)), "float32")), (2,)),
        Reduction(
            "sum_1",
            "float32",
            "sum",
            op("mul", Read("x", at, "float32"), Local("scale", "float32")),
            (2,),
            (0, 1),
        ),
        Let("mean", "float32", op("div", Local("sum_1", "float32"), Const(6.0, "float32")), (0, 1)),
        Write("mean", "float32", Address((size, 1, 0)), Local("mean", "float32"), (0, 1)),
        Write(
            "y",
            "float32",
            Address((multiply(size, 6), 6, 1), 0, (row_major((8, multiply(size, 6))),)),
            op("sub", Read("x", at, "float32"), Local("mean", "float32")),
            (0, 1, 2),
        ),
    )
    nest = Nest("nest_0", rows, statements, "mean")
    golden("loops/nest.txt", nest_text(nest))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (op("mul", op("add", A, B), C), "(a + b) * c"),
        (op("add", A, op("mul", B, C)), "a + b * c"),
        (op("sub", A, op("sub", B, C)), "a - (b - c)"),
        (op("sub", op("sub", A, B), C), "a - b - c"),
        (op("neg", op("add", A, B)), "-(a + b)"),
        (
            op("where", op("lt", A, B, dtype="bool"), A, Const(-1.0, "float32")),
            "where(a < b, a, -1.0)",
        ),
        (Op("convert", (A,), "bfloat16"), "bfloat16(a)"),
        (Const(True, "bool"), "true"),
        (op("mul", A, Const(-2, "float32")), "a * -2"),
    ],
)
def test_expressions(expression: Op, text: str) -> None:
    assert expression_text(expression) == text


def test_formulas() -> None:
    size = symbol("s0")
    assert formula((0, 0), 0) == "0"
    assert formula((multiply(size, -6), 1), 3) == "-6*s0*i + j + 3"
    assert formula((add(size, 1),), -2) == "(s0 + 1)*i - 2"


def test_names_cannot_control_a_terminal() -> None:
    graph = softmax_graph()
    graph.nodes[0] = source("x\x1b[31m\n", (3, 5))
    assert "\x1b" not in graph_text(graph)
    assert "x\\x1b[31m\\n" in graph_text(graph)
