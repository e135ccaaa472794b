"""A product that Inductor pads, as its graph is on a GPU (fx_passes/pad_mm.py)."""

from __future__ import annotations

from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.summary.profile.causes.padding import padded_products
from tests.no_torch.profile_building import GRAPH, LOWERED, Call, at, meta
from tests.no_torch.viewers.profile.conftest import profiled


def node(name: str, target: str, *inputs: str, of: str = "addmm", shape: tuple[int, ...]) -> Node:
    return Node(
        name=name, op="call_function", target=f"aten.{target}", inputs=inputs, value=meta(*shape),
        origins=(of,), location=at(25),
    )  # fmt: skip


def given(name: str, *shape: int) -> Node:
    return Node(name=name, op="placeholder", target=name, value=meta(*shape), origins=(name,))


def padded_graph() -> Graph:
    """What Inductor 2.13 makes of `addmm(bias, x, w.t())` with 123 × 253 × 511."""
    nodes = (
        given("w", 511, 253), given("bias", 511), given("x", 123, 253),
        node("zeros", "full.default", shape=(1,)),
        node("cat", "cat.default", "bias", "zeros", shape=(512,)),
        node("pad", "constant_pad_nd.default", "x", shape=(124, 256)),
        node("permute", "permute.default", "w", of="permute", shape=(253, 511)),
        node("pad_1", "constant_pad_nd.default", "permute", shape=(256, 512)),
        node("addmm_default", "addmm.default", "cat", "pad", "pad_1", shape=(124, 512)),
        node("slice_1", "slice.Tensor", "addmm_default", shape=(123, 512)),
        node("slice_2", "slice.Tensor", "slice_1", shape=(123, 511)),
    )  # fmt: skip
    return Graph(id=LOWERED, kind="lowered", compile_id="0/0", nodes=nodes, parent=GRAPH)


def padded_call(graph: Graph, compiled: float = 130.0) -> Call:
    """`compiled`: µs of the product, of 100 in eager."""
    call = Call()
    call.records.append(graph)
    product = call.operation("aten.addmm.default", 25, 100.0, module="up")
    pads = call.kernel(
        "triton_poi_fused_addmm_t_0", "addmm", [25], 40.0,
        ["zeros", "cat", "pad", "permute", "pad_1"], "triton",
    )  # fmt: skip
    made = call.kernel("extern_kernels.addmm", "addmm", [25], compiled, ["addmm_default"], "aten")
    call.region("linear", [made], [product], modules=["up"])
    call.region("addmm", [pads], [])
    return call


def test_a_padded_product_is_one_cause_with_its_sizes_and_its_line() -> None:
    (cause,) = profiled(padded_call(padded_graph()).done()).causes
    assert cause.kind == "padding"
    assert cause.title == "padded product: 123 × 253 × 511 computed as 124 × 256 × 512"
    assert round(cause.seconds * 1e6, 3) == 70
    assert cause.place is not None
    assert cause.place.line == 25
    assert "padding the matrices takes 40.0 µs" in cause.notes[0]
    assert [fix.code for fix in cause.fixes] == ["torch._inductor.config.shape_padding = False"]
    assert [suggestion.options for suggestion in cause.suggestions] == [
        ("--set", "torch._inductor.config.shape_padding = False")
    ]


def test_what_padding_wins_is_told_with_what_it_costs() -> None:
    """BERT's last product took 1,609 µs in eager, and padded 559 and 25 for its copies."""
    (cause,) = profiled(padded_call(padded_graph(), compiled=20.0).done()).causes
    assert (cause.kind, cause.lost) == ("padding", False)
    assert round(cause.seconds * 1e6, 3) == -40
    assert "padding the matrices takes 40.0 µs" in cause.notes[0]
    assert (cause.fixes, cause.suggestions) == ((), ())


def test_a_pad_of_the_users_is_none_of_inductors() -> None:
    graph = padded_graph()
    nodes = tuple(
        node(one.name, "constant_pad_nd.default", *one.inputs, of="user_pad", shape=(124, 256))
        if one.name.startswith("pad")
        else one
        for one in graph.nodes
    )
    theirs = Graph(id=LOWERED, kind="lowered", compile_id="0/0", nodes=nodes, parent=GRAPH)
    assert [product.node.name for product in padded_products(graph)] == ["addmm_default"]
    assert list(padded_products(theirs)) == []
    kinds = {cause.kind for cause in profiled(padded_call(theirs).done()).causes}
    assert "padding" not in kinds


def test_a_product_without_its_graph_is_as_any_other() -> None:
    records = [one for one in padded_call(padded_graph()).done() if not isinstance(one, Graph)]
    assert "padding" not in {cause.kind for cause in profiled(records).causes}
