from __future__ import annotations

import pytest

from tcw.compiler.trace.records import Graph, Node
from tests.no_torch.profile_building import GRAPH, LOWERED, Call, at, meta
from tests.no_torch.viewers.profile.conftest import profiled


def cast(name: str, dtype: str = "bfloat16") -> Node:
    target = "prims.convert_element_type.default"
    made = meta(256, 1024, dtype=dtype)
    return Node(name=name, op="call_function", target=target, value=made, location=at(25))


def relu(name: str) -> Node:
    return Node(name=name, op="call_function", target="aten.relu.default", location=at(25))


def test_casts_of_autocast_and_their_product_are_told_apart() -> None:
    """Equal regions of layers are one row: casts are not counted as products."""
    call = Call()
    nodes = []
    for layer in range(2):
        module = f"layers.{layer}"
        nodes += [cast(f"cast_{layer}"), relu(f"relu_{layer}"), cast(f"other_{layer}")]
        copied = call.operation(
            "aten._to_copy.default", 25, 90.0, "f32[1024, 256], dtype=torch.bfloat16", module
        )
        product = call.operation("aten.addmm.default", 25, 200.0, "bf16[1024]", module)
        working = call.operation("aten.relu.default", 25, 50.0, "bf16[8, 1024]", module)
        more = call.operation(
            "aten._to_copy.default", 25, 40.0, "f32[256], dtype=torch.bfloat16", module
        )
        first = call.kernel("cpp_fused__to_copy_0", "to_copy", [25], 190.0, [f"cast_{layer}"])
        second = call.kernel("extern_kernels.addmm", "addmm", [25], 300.0, ["addmm"], "aten")
        names = [f"relu_{layer}", f"other_{layer}"]
        third = call.kernel("cpp_fused__to_copy_relu_1", "relu", [25], 20.0, names)
        call.region("linear", [first], [copied], modules=[module])
        call.region("linear", [second], [product], modules=[module])
        call.region("relu + linear", [third], [working, more], modules=[module])
    graph = Graph(id=LOWERED, kind="lowered", compile_id="0/0", nodes=tuple(nodes), parent=GRAPH)
    one = profiled(call.done(before=[graph]))
    labels = {row.label: row.count for row in one.rows}
    assert labels == {
        "linear: cast to bf16": 2,
        "linear": 2,
        "relu + linear: cast to bf16": 2,
    }
    titles = [cause.title for cause in one.causes]
    assert "linear: cast to bf16 is slower compiled: 2 eager operations became 2 kernels" in titles
    won = "relu + linear: cast to bf16, 4 eager operations became 2 kernels"
    assert won in titles


@pytest.mark.parametrize(
    ("label", "dtypes", "expected"),
    [
        ("to", ("bfloat16",), "to"),
        ("linear backward", ("float32",), "linear backward: cast to f32"),
        ("linear", ("bfloat16", "float32"), "linear: casts"),
    ],
)
def test_what_a_cast_is_called(label: str, dtypes: tuple[str, ...], expected: str) -> None:
    call = Call()
    made = [
        call.operation("aten._to_copy.default", 25, 9.0, f"bf16[4], dtype=torch.{dtype}")
        for dtype in dtypes
    ]
    step = call.kernel("cpp_fused__to_copy_0", "to_copy", [25], 60.0, ["cast"])
    graph = Graph(
        id=LOWERED, kind="lowered", compile_id="0/0", nodes=(cast("cast", dtypes[0]),), parent=GRAPH
    )
    call.region(label, [step], made)
    (row,) = profiled(call.done(before=[graph])).rows
    assert row.label == expected
