"""The reference interpreter against torch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tcw.compiler.loops.expressions import (
    Address,
    Const,
    Gather,
    IndexTerm,
    Iota,
    Load,
    Op,
    Read,
    SizeOf,
)
from tcw.compiler.loops.graph import Buffer, Call, Graph, Map, Operand, Reduce, Result, Scan, Store
from tcw.compiler.loops.interpreter import run_graph, run_program
from tcw.compiler.loops.interpreter.operator_meanings import apply
from tcw.compiler.loops.layouts import Layout, flip, permute, slice_dimension
from tcw.compiler.loops.nest import Axis, Nest, Program, Write
from tcw.compiler.loops.operators import OPERATORS
from tcw.compiler.loops.sizes import symbol
from tcw.compiler.loops.verifier import verify_graph, verify_program
from tcw.compiler.loops.verifier.check_expressions import WHOLE
from tests.no_torch.loops.samples import memory, op, softmax_graph, softmax_program, source, tensor


def run(graph: Graph, *arguments: object) -> list[torch.Tensor]:
    verify_graph(graph)
    return run_graph(graph, arguments)


def of(nodes: list, outputs: list, parameters: list | None = None, **more: object) -> Graph:
    parameters = ["x"] if parameters is None else parameters
    return Graph("test", nodes, parameters, outputs, **more)


def test_softmax() -> None:
    x = torch.randn(3, 5)
    assert torch.allclose(run(softmax_graph(), x)[0], x.softmax(1))


def test_softmax_as_one_nest_with_a_rider() -> None:
    x = torch.randn(3, 5)
    program = softmax_program()
    verify_program(program)
    result, columns = run_program(program, [x])
    assert torch.allclose(result, x.softmax(1))
    assert torch.allclose(columns, x.softmax(1).sum(0))


def test_symbolic_sizes_come_from_the_arguments() -> None:
    rows = symbol("s0")
    graph = softmax_graph(rows, 5)
    graph.parameters.insert(0, "s0")
    graph.symbols["z0"] = "s0//2 + Max(1, s0)"
    graph.outputs.append(symbol("z0"))
    x = torch.randn(7, 5)
    result, size = run(graph, 7, x)
    assert torch.allclose(result, x.softmax(1))
    assert size == 10
    program = softmax_program(rows, 5)
    program.graph.parameters.insert(0, "s0")
    verify_program(program)
    assert torch.allclose(run_program(program, [7, x])[1], x.softmax(1).sum(0))


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_and_one_row(rows: int) -> None:
    x = torch.randn(rows, 5)
    result, columns = run_program(softmax_program(rows, 5), [x])
    assert torch.allclose(result, x.softmax(1))
    assert torch.allclose(columns, x.softmax(1).sum(0))


def test_views() -> None:
    x = torch.randn(4, 6)
    chain = (slice_dimension((4, 6), 1, 1, 3, 2), flip((4, 3), (0,)), permute((4, 3), (1, 0)))
    graph = of(
        [source("x", (4, 6)), Map("y", "float32", (3, 4), Load("x", chain, "float32"))],
        [tensor("y", (3, 4))],
    )
    assert torch.equal(run(graph, x)[0], x[:, 1::2].flip(0).t())


def test_an_input_with_gaps() -> None:
    x = torch.randn(4, 6)[:, ::2]
    load = Load("x", (Layout((4, 3), (6, 2)),), "float32")
    graph = of(
        [replace(source("x", (4, 3)), strides=(6, 2)), Map("y", "float32", (4, 3), load)],
        [tensor("y", (4, 3))],
    )
    assert torch.equal(run(graph, x)[0], x)
    with pytest.raises(ValueError, match="strides"):
        run_graph(graph, [x.contiguous()])


def test_gather_wraps_and_checks() -> None:
    table, index = torch.randn(5, 3), torch.tensor([1, -1, 4, 0])
    term = IndexTerm(Load("index", (Layout((4, 3), (1, 0)),), "int64"), 5, 3)
    row = Gather("table", (Layout((4, 3), (0, 1)),), (term,), "float32")
    graph = of(
        [source("table", (5, 3)), source("index", (4,), "int64"), Map("y", "float32", (4, 3), row)],
        [tensor("y", (4, 3))],
        ["table", "index"],
    )
    assert torch.equal(run(graph, table, index)[0], table[index])
    with pytest.raises(IndexError, match="index 5 is out of bounds for size 5"):
        run_graph(graph, [table, torch.tensor([1, 5, 0, 0])])


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "argmax", "argmin"])
def test_reductions_keep_nan_and_the_first_index(name: str) -> None:
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, float("nan"), 2.0], [0.0, 0.0, 0.0]])
    dtype = "int64" if name.startswith("arg") else "float32"
    graph = of(
        [
            source("x", (3, 3)),
            Reduce("y", dtype, name, (3, 3), (False, True), Load("x", (), "float32")),
        ],
        [tensor("y", (3,), dtype)],
    )
    expected = getattr(torch, {"max": "amax", "min": "amin"}.get(name, name))(x, dim=1)
    assert torch.equal(run(graph, x)[0].nan_to_num(-7), expected.nan_to_num(-7))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse: bool) -> None:
    x = torch.randn(2, 4, 3)
    node = Scan("y", "float32", "sum", (2, 4, 3), 1, Load("x", (), "float32"), reverse)
    graph = of([source("x", (2, 4, 3)), node], [tensor("y", (2, 4, 3))])
    expected = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    assert torch.equal(run(graph, x)[0], expected)


def test_stores_make_a_cat_and_a_mutation_comes_after_earlier_readers() -> None:
    x = torch.randn(2, 3)
    load = Load("x", (), "float32")
    nodes = [
        source("x", (2, 3)),
        Map("old", "float32", (2, 3), op("neg", load)),
        Buffer("cat", "float32", (2, 6)),
        Store("left", "cat", "float32", (2, 3), (Layout((2, 3), (6, 1)),), load),
        Store("x_new", "x", "float32", (2, 3), (), op("mul", load, Const(2.0, "float32"))),
        Store("right", "cat", "float32", (2, 3), (Layout((2, 3), (6, 1), 3),), load),
    ]
    graph = of(nodes, [tensor("old", (2, 3)), tensor("cat", (2, 6))])
    before = x.clone()
    old, cat = run(graph, x)
    assert torch.equal(old, -before)
    assert torch.equal(x, before * 2)
    assert torch.equal(cat, torch.cat([before, before * 2], 1))


@pytest.mark.parametrize("mode", ["set", "add"])
def test_scatter(mode: str) -> None:
    x, index = torch.randn(4), torch.tensor([2, 0, 2, 2])
    term = IndexTerm(Load("index", (), "int64"), 3, 1)
    zero = Layout((4,), (0,))
    nodes = [
        source("x", (4,)),
        source("index", (4,), "int64"),
        Buffer("y", "float32", (3,)),
        Store("fill", "y", "float32", (3,), (), Const(0.0, "float32")),
        Store("s", "y", "float32", (4,), (zero,), Load("x", (), "float32"), (term,), mode),
    ]
    (result,) = run(of(nodes, [tensor("y", (3,))], ["x", "index"]), x, index)
    expected = torch.zeros(3)
    for i, value in zip(index.tolist(), x.tolist(), strict=True):
        expected[i] = value + (expected[i] if mode == "add" else 0)
    assert torch.allclose(result, expected)


def test_low_precision_is_rounded_where_stored_or_converted() -> None:
    x = torch.randn(100).bfloat16()
    load = Load("x", (), "bfloat16")
    wide = Op("convert", (load,), "float32")
    total = op("add", op("mul", wide, wide), wide)
    nodes = [
        source("x", (100,), "bfloat16"),
        Map("y", "bfloat16", (100,), Op("convert", (total,), "bfloat16")),
        Map("wide", "float32", (100,), total),
    ]
    graph = of(nodes, [tensor("y", (100,), "bfloat16"), tensor("wide", (100,))])
    y, full = run(graph, x)
    assert torch.equal(full, x.float() * x.float() + x.float())
    assert torch.equal(y, full.bfloat16())


def test_calls() -> None:
    x = torch.randn(3, 3)
    call = Call(
        "mm",
        "aten.mm.default",
        (tensor("x", (3, 3)), Operand("x", "float32", (3, 3), (1, 3))),
        results=(Result("mm", "float32", (3, 3), (3, 1)),),
    )
    top = Call(
        "topk",
        "aten.topk.default",
        (tensor("mm", (3, 3)), 2),
        results=(Result("values", "float32", (3, 2), (2, 1)), None),
        single=False,
    )
    graph = of([source("x", (3, 3)), call, top], [tensor("mm", (3, 3)), tensor("values", (3, 2))])
    product, values = run(graph, x)
    assert torch.equal(product, x @ x.t())
    assert torch.equal(values, product.topk(2).values)


def test_iota_and_sizes() -> None:
    size = symbol("s0")
    expression = Op("mul", (Iota(()), SizeOf(size)), "int64")
    nodes = [Map("y", "int64", (size,), expression)]
    assert torch.equal(
        run(of(nodes, [tensor("y", (size,), "int64")], ["s0"]), 4)[0], torch.arange(4) * 4
    )


def test_memory_that_nobody_wrote_shows() -> None:
    graph = of([Buffer("y", "float32", (2,))], [tensor("y", (2,))], [])
    assert run(graph)[0].isnan().all()


def test_operators_do_not_promote() -> None:
    expression = op("add", Load("x", (), "float64"), Const(1, "int64"), dtype="float64")
    nodes = [source("x", (2,), "float64"), Map("y", "float64", (2,), expression)]
    graph = of(nodes, [tensor("y", (2,), "float64")])
    with pytest.raises(ValueError, match="operators do not promote"):
        verify_graph(graph)


def test_of_several_positions_the_last_in_row_major_order_stays() -> None:
    graph = of([source("x", (2, 3))], [tensor("y", (3,))])
    read = Read("x", Address((3, 1)), "float32")
    write = Write("y", "float32", Address((0, 1)), read, (0, 1), ordered=True)
    nest = Nest("last", (Axis(2), Axis(3)), (write,))
    program = Program(graph, (nest,), {"y": memory("y", (3,))})
    verify_program(program)
    x = torch.randn(2, 3)
    assert torch.equal(run_program(program, [x])[0], x[1])


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_a_meaning(name: str) -> None:
    operator = OPERATORS[name]
    whole = name in WHOLE or name.startswith("bitwise")
    dtype = "int64" if whole else "float32"
    args = [torch.ones(3, dtype=getattr(torch, dtype)) for _ in range(operator.arity)]
    if name == "where":
        args[0] = args[0] != 0
    result = apply(name, args, "bool" if operator.boolean else dtype)
    assert result.shape == (3,)
