"""Steps of a graph's code find their kernel records, and stay unmatched if that is uncertain."""

from __future__ import annotations

import pytest
from msgspec import structs

from tcw.compiler.measure.probes.steps import GraphStep, kernel_of_steps
from tcw.compiler.trace.matching import root_graph
from tcw.compiler.trace.records import Kernel


def steps(*names: str) -> list[GraphStep]:
    return [
        GraphStep(index, "aten" if "." in name else "kernel", name)
        for index, name in enumerate(names)
    ]


def kernel(id: str, name: str, *places: int) -> Kernel:
    language = "aten" if "." in name or name.istitle() else "cpp"
    first = places[0] if places else None
    more = places if len(places) > 1 else ()
    return Kernel(
        id=id, graph="0/0/forward", name=name, label="", language=language, step=first, steps=more
    )


def test_a_function_that_is_called_twice_is_one_kernel() -> None:
    found = kernel_of_steps(steps("f", "g", "f"), [kernel("k1", "f", 0, 2), kernel("k2", "g", 1)])
    assert found == {0: "k1", 1: "k2", 2: "k1"}


def test_calls_of_one_name_are_told_apart_by_their_place_in_the_code() -> None:
    records = [
        kernel("k1", "extern_kernels.mm", 2),
        kernel("k2", "f", 1),
        kernel("k3", "extern_kernels.mm", 0),
    ]
    found = kernel_of_steps(steps("extern_kernels.mm", "f", "extern_kernels.mm"), records)
    assert found == {0: "k3", 1: "k2", 2: "k1"}


def test_without_places_the_order_of_the_records_is_that_of_the_code() -> None:
    records = [kernel(f"k{n}", "extern_kernels.mm") for n in range(2)]
    assert kernel_of_steps(steps("extern_kernels.mm", "extern_kernels.mm"), records) == {
        0: "k0",
        1: "k1",
    }


def test_another_number_of_calls_than_was_recorded_names_none_of_them() -> None:
    records = [kernel(f"k{n}", "extern_kernels.mm", n) for n in range(2)]
    assert kernel_of_steps(steps(*["extern_kernels.mm"] * 3), records) == {}


def test_an_aten_call_is_known_in_any_spelling() -> None:
    records = [kernel("k1", "torch.ops.aten.sort.default", 0)]
    assert kernel_of_steps(steps("aten.sort"), records) == {0: "k1"}


def test_a_call_of_another_name_is_found_by_its_place_where_all_others_are_at_theirs() -> None:
    records = [kernel("k1", "f", 0), kernel("k2", "Devicecopy", 1), kernel("k3", "g", 2)]
    assert kernel_of_steps(steps("f", "aten.copy_", "g"), records) == {0: "k1", 1: "k2", 2: "k3"}
    moved = [kernel("k1", "f", 1), kernel("k2", "Devicecopy", 0), kernel("k3", "g", 2)]
    assert kernel_of_steps(steps("f", "aten.copy_", "g"), moved) == {0: "k1", 2: "k3"}


def test_subgraphs_have_kernels_of_their_own() -> None:
    both = [
        GraphStep(0, "aten", "extern_kernels.mm", within="true_graph_0"),
        GraphStep(1, "aten", "extern_kernels.mm", within="false_graph_0"),
    ]
    records = [
        structs.replace(
            kernel(f"k{n}", "extern_kernels.mm", 0), graph=f"0/0/forward/{name}/lowered"
        )
        for n, name in enumerate(("false_graph_0", "true_graph_0"))
    ]
    assert kernel_of_steps(both, records) == {0: "k1", 1: "k0"}


@pytest.mark.parametrize(
    ("graph", "parts"),
    [
        ("0/0/forward/lowered", ("0/0/forward", "")),
        ("0/0/forward/lowered.2", ("0/0/forward/lowered.2", "")),
        ("1/0_1/inference/true_graph_0/lowered", ("1/0_1/inference", "true_graph_0")),
        ("0/0/backward", ("0/0/backward", "")),
        ("0/0/inference@sm_90/false_graph_0/lowered", ("0/0/inference@sm_90", "false_graph_0")),
    ],
)
def test_a_subgraph_belongs_to_the_graph_before_it(graph: str, parts: tuple[str, str]) -> None:
    assert root_graph(graph) == parts
