from __future__ import annotations

import pytest

from tcw.compiler.trace.records import Graph, Kernel, Node
from tcw.viewers.labels import KernelNames
from tcw.viewers.recording import Recording


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("layers.0.qkv", "addmm qkv"),
        ("encoder.layer.1.attention.self", "addmm attention.self"),
        ("stem.net.0", "addmm net.0"),
        ("0", "addmm 0"),
        ("self", "addmm self"),
        ("layers.addmm", "addmm"),
        ("", "addmm"),
    ],
)
def test_a_library_call_is_named_with_the_module_that_calls_it(module: str, name: str) -> None:
    node = Node(name="addmm", op="call_function", target="aten.addmm.default", module=module)
    graph = Graph(id="0/0/forward", kind="forward", compile_id="0/0", nodes=(node,))
    kernel = Kernel(
        id="k0", graph=graph.id, name="extern", language="aten", label="addmm", origins=("addmm",)
    )
    assert KernelNames(Recording([graph, kernel])).name(kernel) == name
