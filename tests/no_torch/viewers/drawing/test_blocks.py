from __future__ import annotations

import pytest

from benchmarks.traces import large_graph
from tcw.compiler.trace.records import (
    AnyRecord,
    FusionGroup,
    FusionGroups,
    Graph,
    Node,
    SchedulerNode,
    Timed,
    WhatIf,
)
from tcw.viewers.drawing.blocks import ALL, all_key, diagram
from tcw.viewers.drawing.diagram import MOST, Diagram
from tcw.viewers.panes import node
from tcw.viewers.panes.view import View
from tests.no_torch.viewers.panes.conftest import view_of


def drawn(view: View) -> Diagram:
    found = diagram(view)
    assert found is not None
    for first, second in found.edges:
        assert first < second
    return found


def titles(view: View) -> list[str]:
    return [block.title for block in drawn(view).blocks]


def test_groups_carry_the_names_of_their_kernels(block: View) -> None:
    assert titles(block) == [
        "x  4×128×256", "k0 layer norm", "addmm qkv", "k2 q copy", "k2 k copy", "bmm q@k",
        "k4 softmax", "k2 v copy", "bmm @v", "k6 merge heads", "addmm proj", "k8 add",
    ]  # fmt: skip
    kinds = {one.title: one.kind for one in drawn(block).blocks}
    assert kinds["x  4×128×256"] == "input"
    assert kinds["addmm qkv"] == "call"
    assert kinds["k4 softmax"] == "group"
    hues = {one.title: one.hue for one in drawn(block).blocks}
    assert hues["k2 v copy"] == hues["k2 q copy"] >= 0
    assert hues["addmm qkv"] == -1


def test_every_node_is_drawn_once_and_no_edge_is_lost(block: View) -> None:
    """At the scale of operations nothing is looked through but weights."""
    block.scale, block.weights = 1, True
    found = drawn(block)
    graph = found.graph
    shown = [index for one in found.blocks for index in one.nodes]
    expected = [at for at, one in enumerate(graph.nodes) if one.op != "output"]
    assert sorted(shown) == expected
    edges = {
        (found.of_node[name], found.of_node[one.name])
        for one in graph.nodes
        for name in one.inputs
        if one.op != "output"
    }
    assert set(found.edges) == edges


def test_weights_are_hidden_and_counted(block: View) -> None:
    found = drawn(block)
    assert found.weights == 6
    assert found.words == "71 nodes, 11 groups, weights hidden"
    block.weights = True
    assert "qkv.weight  768×256" in titles(block)
    assert "hidden" not in drawn(block).words


def test_the_same_view_is_drawn_once(block: View) -> None:
    assert diagram(block) is diagram(block)
    before = diagram(block)
    block.scale = 2
    assert diagram(block) is not before


def graph_of(count: int) -> View:
    graph = large_graph(count)
    return view_of([graph])


@pytest.mark.parametrize("count", [400, 5000, 50_000])
def test_a_large_graph_is_folded_by_module(count: int) -> None:
    view = graph_of(count)
    found = drawn(view)
    assert len(found.blocks) <= MOST
    assert sum(len(block.nodes) for block in found.blocks) == count + 1
    module = next(block for block in found.blocks if block.kind == "module")
    view.unfolded.add(module.fold)
    opened = drawn(view)
    assert len(found.blocks) < len(opened.blocks)
    assert sum(len(block.nodes) for block in opened.blocks) == count + 1
    view.unfolded = {all_key(found.graph)}
    assert len(drawn(view).blocks) == (count + 1 if count <= ALL else len(found.blocks))


def test_a_large_graph_without_modules_is_folded_by_runs() -> None:
    names = [f"add_{index}" for index in range(900)]
    nodes = tuple(
        Node(name=name, op="call_function", target="aten.add.Tensor", inputs=(names[at - 1],))
        for at, name in enumerate(names)
    )
    view = view_of([Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes)])
    assert titles(view)[:2] == ["ops 1–6", "ops 7–12"]


def test_groups_that_read_each_other_are_drawn_apart() -> None:
    """Origins of scheduler nodes overlap; a picture has no circles."""
    nodes = tuple(
        Node(name=name, op="call_function", target="aten.add.Tensor", inputs=inputs)
        for name, inputs in (("a", ()), ("b", ("a",)), ("c", ("b",)), ("d", ("c",)))
    )
    graph = Graph(id="0/0/inference/lowered", kind="lowered", compile_id="0/0", nodes=nodes)
    records: list[AnyRecord] = [graph]
    for name, origins in (("op0", ("a", "c")), ("op1", ("b", "d"))):
        records.append(
            SchedulerNode(graph=graph.id, name=name, kind="pointwise", origins=origins, label=name)
        )
    groups = tuple(
        FusionGroup(name=name, nodes=(name,), kind="loops", label="add") for name in ("op0", "op1")
    )
    records.append(FusionGroups(graph=graph.id, groups=groups))
    found = drawn(view_of(records))
    assert [len(block.nodes) for block in found.blocks] == [1, 1, 1, 1]
    assert len({block.hue for block in found.blocks}) == 2


def words(view: View) -> str:
    return "\n".join(row.text.rstrip() for row in node.content(view, 36).rows)


def test_the_node_pane_tells_what_a_group_reads_and_why_it_is_one(block: View) -> None:
    block.select("k:k4")
    said = words(block)
    assert " k4  softmax" in said
    assert " reads    bmm  2.0 MB" in said
    assert " writes   div  2.0 MB  returned" in said
    assert " inside   buf9–13" in said
    assert " domain   4096 rows × 128" in said
    assert " time     not measured" in said
    assert " ✓ 5 of its pairs fused" in said
    assert " 71 nodes\n 11 groups\n weights hidden" in said


def test_the_node_pane_of_a_node_and_of_nothing(block: View) -> None:
    block.select("fx:0/0/forward/lowered/exp")
    block.scale = 1
    said = words(block)
    assert " exp\n" in said
    assert " in k4 softmax" in said
    assert words(view_of([])).strip() == "no block of a graph is selected"


def test_the_time_of_a_group_is_that_of_its_kernel_alone(block_records: list[AnyRecord]) -> None:
    """Where two runs were compared; a time that several kernels share is shown at none of them."""
    timed = Timed(median=0.0001579, spread=0.0000011, runs=100)
    for kernels, said in (
        (("k4",), " time     158 µs  ±1.10 µs, k4 alone"),
        (("k4", "k6"), " time     not measured"),
    ):
        record = WhatIf(base=0, run=2, scope="kernel", base_kernels=kernels, before=timed)
        view = view_of([*block_records, record])
        view.select("k:k4")
        assert said in words(view)
