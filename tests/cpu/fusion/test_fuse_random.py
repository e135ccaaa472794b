"""Any graph, fused in any way that the gate allows, computes what it did before."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.fuse import Fusion, fuse
from tcw.compiler.loops.graph import Graph, Input
from tcw.compiler.loops.interpreter import run_graph, run_program
from tcw.compiler.loops.printer import program_text
from tcw.compiler.loops.sizes import product
from tcw.compiler.loops.verifier import verify_graph, verify_program
from tests.cpu.fusion.random_graphs import graphs

LIMITS = settings(max_examples=100)


def arguments(graph: Graph) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(product(node.shape), dtype=torch.float64, generator=generator).view(node.shape)
        for node in graph.nodes
        if isinstance(node, Input)
    ]


def check(graph: Graph, fusion: Fusion) -> None:
    verify_program(fusion.program)
    one, two = arguments(graph), arguments(graph)
    expected = run_graph(graph, one)
    found = run_program(fusion.program, two)
    torch.testing.assert_close([*found, *two], [*expected, *one], rtol=1e-9, atol=1e-9)


@LIMITS
@given(graphs())
def test_a_fused_program_computes_its_graph(graph: Graph) -> None:
    verify_graph(graph)
    check(graph, fuse(graph))


@LIMITS
@given(graphs(), st.data())
def test_whatever_the_gate_says(graph: Graph, data: st.DataObject) -> None:
    pairs = [pair.id for pair in fuse(graph).pairs]
    chosen = data.draw(st.lists(st.sampled_from(pairs), max_size=6)) if pairs else []
    overrides = {id: data.draw(st.sampled_from(["apart", "fuse"])) for id in chosen}
    gate = Gate(overrides)
    fusion = fuse(graph, gate)
    check(graph, fusion)
    refused = {one.decision.id: one.refused for one in gate.refused()}
    for group in fusion.groups:
        for id, choice in overrides.items():
            first, second = id.rpartition("/")[2].split("+")
            if choice == "apart" and {first, second} <= set(group.names):
                assert "rule computed twice" in refused.get(id, ""), id


@LIMITS
@given(graphs())
def test_the_same_graph_is_fused_the_same_way(graph: Graph) -> None:
    one, two = fuse(graph), fuse(graph)
    assert program_text(one.program) == program_text(two.program)
    assert one.pairs == two.pairs
