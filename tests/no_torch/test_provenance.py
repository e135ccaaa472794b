from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.trace import refs
from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import Graph, Kernel, KernelLine, Location, Node, SchedulerNode
from tests.block_capture import FILE
from tests.block_trace import block_trace


@pytest.fixture(scope="module")
def block() -> Provenance:
    return Provenance(block_trace())


def of_graph(found: dict[str, str], graph: str) -> dict[str, str]:
    return {
        refs.split_node(ref)[1]: quality
        for ref, quality in found.items()
        if refs.kind(ref) == "fx" and refs.split_node(ref)[0] == graph
    }


def test_a_source_line_leads_to_its_nodes_in_every_graph(block: Provenance) -> None:
    found = block.counterparts(refs.source(FILE, 19))
    assert of_graph(found, "0/0") == {"weights": "exact"}
    lowered = of_graph(found, "0/0/forward/lowered")
    assert {name for name, quality in lowered.items() if quality == "exact"} == {
        "where_self", "exp", "sum_1", "div",
    }  # fmt: skip
    assert lowered["amax_default"] == "inferred"
    assert len(lowered) == 4 + 14


def test_a_source_line_leads_to_operations_kernels_and_kernel_lines(block: Provenance) -> None:
    found = block.counterparts(refs.source(FILE, 19))
    assert found[refs.operation("0/0/forward/lowered", "op13")] == "exact"
    assert found[refs.kernel("k4")] == "exact"
    lines = [ref for ref in found if ref.startswith("k:k4:")]
    assert lines
    assert {found[ref] for ref in lines} == {"exact", "inferred"}
    assert refs.kernel("k0") not in found


def test_a_kernel_line_leads_back_to_the_source(block: Provenance) -> None:
    last = max(
        refs.split_kernel(ref)[1] or 0
        for ref in block.counterparts(refs.source(FILE, 19))
        if ref.startswith("k:k4:")
    )
    found = block.counterparts(refs.kernel("k4", last))
    sources = {ref: quality for ref, quality in found.items() if refs.kind(ref) == "src"}
    assert sources == {refs.source(FILE, 19): "exact"}


def test_counterparts_are_mutual(block: Provenance) -> None:
    start = refs.source(FILE, 19)
    for ref, quality in block.counterparts(start).items():
        assert block.counterparts(ref)[start] == quality


def test_an_unknown_ref_has_none(block: Provenance) -> None:
    assert block.counterparts("src:/nowhere.py:1") == {}


def test_siblings_on_one_line_are_no_counterparts() -> None:
    place = Location(file="a.py", line=3)
    nodes = tuple(
        Node(name=name, op="call_function", target="aten.add", location=place) for name in "ab"
    )
    provenance = Provenance([Graph(id="0/0", kind="captured", compile_id="0/0", nodes=nodes)])
    assert set(provenance.counterparts("fx:0/0/a")) == {"src:a.py:3"}


def test_an_inferred_link_makes_the_path_inferred_unless_an_exact_one_exists() -> None:
    place = Location(file="a.py", line=3)
    node = Node(name="a", op="call_function", target="t", location=place, inferred=True)
    graph = Graph(id="0/0", kind="captured", compile_id="0/0", nodes=(node,))
    kernel = Kernel(
        id="k0",
        graph="0/0",
        name="f",
        label="f",
        language="cpp",
        origins=("a",),
        lines=(KernelLine(line=2, nodes=("a",), locations=(place,)),),
    )
    found = Provenance([kernel, graph]).counterparts("src:a.py:3")
    assert found == {"fx:0/0/a": "inferred", "k:k0": "inferred", "k:k0:2": "exact"}


def test_a_link_that_was_recorded_stays_exact_where_it_is_also_inferred() -> None:
    known, guessed = (
        KernelLine(line=2, nodes=("a",), inferred=inferred) for inferred in (False, True)
    )
    for lines in ((known, guessed), (guessed, known)):
        kernel = Kernel(id="k0", graph="g", name="f", label="f", language="cpp", lines=lines)
        assert Provenance([kernel]).counterparts("k:k0:2") == {"fx:g/a": "exact"}


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30), st.integers(0, 30))
def test_order_and_batches_do_not_matter(pairs: list[tuple[int, int]], cut: int) -> None:
    records = [
        SchedulerNode(graph="g", name=f"op{a}", kind="pointwise", origins=(f"n{b}",), label="")
        for a, b in pairs
    ]
    whole = Provenance(records)
    parts = Provenance(records[cut:])
    parts.counterparts("fx:g/n0")
    parts.feed(records[:cut])
    for number in range(9):
        for ref in (refs.operation("g", f"op{number}"), refs.node("g", f"n{number}")):
            assert whole.counterparts(ref) == parts.counterparts(ref)
