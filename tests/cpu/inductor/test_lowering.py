"""The lowered graph, and the result of each of its nodes."""

from __future__ import annotations

import inspect

import pytest
import torch

from tcw.compiler.trace.records import Graph, Lowered, SchedulerNode
from tests.cpu.inductor import models
from tests.cpu.inductor.conftest import Watched
from tests.cpu.inductor.recorded import Recorded, record, recording


def line_of(mark: str) -> int:
    """The number of the line in models.py that ends with this comment."""
    lines = inspect.getsource(models).splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


@pytest.fixture(scope="module")
def one_hot_loss() -> Recorded:
    """A cross entropy, whose backward a pass of Inductor's rewrites into nodes without a line."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(16, 4)

    def loss(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(layer(x), target)

    with recording("lowering") as recorded:
        torch.compile(loss)(torch.randn(8, 16), torch.randint(0, 4, (8,))).backward()
    return recorded


def lowered(recorded: Recorded) -> Graph:
    return next(graph for graph in recorded.all(Graph) if graph.kind == "lowered")


def test_id_and_parent(softmax: Recorded) -> None:
    graph = lowered(softmax)
    assert (graph.id, graph.parent) == ("0/0/inference/lowered", "0/0/inference")
    assert graph.compile_id == "0/0"


def test_origins_are_nodes_of_the_parent(softmax: Recorded, trained: Watched) -> None:
    for recorded in (softmax, trained.recorded):
        graphs = {graph.id: graph for graph in recorded.all(Graph)}
        checked = 0
        for graph in graphs.values():
            if graph.kind != "lowered":
                continue
            parents = {node.name for node in graphs[graph.parent].nodes}
            for node in graph.nodes:
                if node.op == "call_function":
                    assert node.origins, node
                    assert set(node.origins) <= parents, node
                    checked += 1
        assert checked


def test_nodes_of_a_replacement_take_the_lines_of_what_they_replaced(softmax: Recorded) -> None:
    inferred = [node for node in lowered(softmax).nodes if node.inferred]
    assert inferred, "this torch no longer rewrites a scaled softmax: take another pattern"
    places = {line_of("scaled"), line_of("softmax")}
    for node in inferred:
        assert node.location is not None
        assert node.location.line in places
        assert node.location.file == models.__file__
        assert node.made_by


def test_a_node_takes_the_line_that_its_parent_was_given(one_hot_loss: Recorded) -> None:
    graphs = {graph.id: graph for graph in one_hot_loss.all(Graph)}
    parent = {node.name: node for node in graphs["0/0/backward"].nodes}
    taken = 0
    for node in graphs["0/0/backward/lowered"].nodes:
        if node.op == "call_function":
            assert node.location is not None, node
            (origin,) = node.origins
            assert node.location == parent[origin].location
            assert node.inferred >= parent[origin].inferred
            taken += node.inferred
    assert taken, "this torch gives every node a line: take a loss that a pass rewrites"


def test_computing_nodes_have_a_line(softmax: Recorded, transformer: Watched) -> None:
    for recorded in (softmax, transformer.recorded):
        for node in lowered(recorded).nodes:
            if node.op == "call_function":
                assert node.location is not None, node


def test_each_node_is_lowered_to_some_ir(transformer: Watched) -> None:
    recorded = transformer.recorded
    names = [node.name for node in lowered(recorded).nodes if node.op != "output"]
    records = recorded.all(Lowered)
    assert [record.node for record in records] == names
    assert all(record.ir for record in records)
    assert {"Pointwise", "Reduction"} <= {record.ir for record in records}


def test_every_operation_belongs_to_one_node(transformer: Watched) -> None:
    records = transformer.recorded.all(Lowered)
    operations = [name for record in records for name in record.operations]
    assert len(operations) == len(set(operations))
    scheduled = {node.name for node in transformer.recorded.all(SchedulerNode)}
    assert scheduled <= set(operations)


def test_library_calls_say_why(transformer: Watched) -> None:
    records = transformer.recorded.all(Lowered)
    products = [found for found in records if found.target.startswith(("aten.addmm", "aten.bmm"))]
    assert products
    for product in products:
        assert "library" in product.fallback
    assert all(not found.fallback for found in records if found.ir == "Pointwise")


def test_a_custom_operator_falls_back_and_says_so() -> None:
    @torch.library.custom_op("tcw_test::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @doubled.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    recorded, output = record(lambda x: doubled(x.sin()).cos(), torch.ones(4), until="fusion")
    assert torch.equal(output, (torch.ones(4).sin() * 2).cos())
    fallbacks = [found.fallback for found in recorded.all(Lowered) if found.fallback]
    assert fallbacks == ["custom operator: Inductor has no lowering for it"]
