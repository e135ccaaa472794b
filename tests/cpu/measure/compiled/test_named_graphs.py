"""Live graphs are found by the recorded texts of their kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.measure.compiled.alone import NotAlone
from tcw.compiler.measure.compiled.named_graphs import named_graphs
from tcw.compiler.trace.records import Kernel, Wrapper
from tcw.compiler.trace.writer import text_hash


@dataclass(eq=False)
class Live:
    """A compiled graph that only has its texts."""

    texts: dict[str, str] = field(default_factory=dict)
    arguments: list[Any] | None = None
    source: str = ""

    @property
    def kernels(self) -> list[str]:
        return list(self.texts)

    def text(self, kernel: str) -> str:
        return self.texts[kernel]

    def run(self, arguments: list[Any]) -> Any:
        raise NotAlone("it has no code")

    def capture(self, wanted: Any, shadows: Any) -> Any:
        raise NotAlone("it has no code")

    def together(self, steps: Any) -> Any:
        raise NotAlone("it has no code")


def recorded(graph: str, name: str, text: str = "", **more: Any) -> Kernel:
    language = "cpp" if text else "aten"
    kernel = {"id": "k1", "label": "", "language": language, "text": text_hash(text), **more}
    return Kernel(graph=graph, name=name, **kernel)


def test_each_graph_gets_the_id_of_the_kernels_it_has() -> None:
    first, second, third = Live({"f": "one"}), Live({"f": "two"}), Live()
    kernels = [
        recorded("0/0/forward/lowered", "f", "two"),
        recorded("0/0/forward/lowered", "extern_kernels.mm"),
        recorded("0/0/backward/lowered", "f", "one"),
        recorded("1/0/inference/lowered", "extern_kernels.mm"),
        recorded("0/0/forward@sm_90/lowered", "f", "one", predicted=True),
    ]
    named = named_graphs([first, second, third], kernels)
    assert named.graphs == {"0/0/forward": second, "0/0/backward": first, "1/0/inference": third}
    assert named.lost == []


def test_equal_graphs_are_told_apart_by_their_order() -> None:
    graphs = [Live({"f": "same"}), Live({"f": "same"})]
    named = named_graphs(graphs, [recorded(f"{n}/0/forward", "f", "same") for n in range(2)])
    assert named.graphs == {"0/0/forward": graphs[0], "1/0/forward": graphs[1]}


def test_a_graph_that_became_other_code_is_lost() -> None:
    named = named_graphs([Live({"f": "new"})], [recorded("0/0/forward", "f", "old")])
    assert named.graphs == {}
    assert named.lost == ["0/0/forward"]


def test_graphs_of_library_calls_alone_are_told_apart_by_their_wrappers() -> None:
    first, second = Live(source="mm(mm)"), Live(source="bmm(bmm)")
    records = [
        recorded("0/0/forward/lowered", "extern_kernels.bmm"),
        Wrapper(graph="0/0/forward/lowered", language="python", text=text_hash("bmm(bmm)")),
        recorded("0/0/backward/lowered", "extern_kernels.mm"),
        Wrapper(graph="0/0/backward/lowered", language="python", text=text_hash("mm(mm)")),
    ]
    named = named_graphs([first, second], records)
    assert named.graphs == {"0/0/forward": second, "0/0/backward": first}


def test_a_wrapper_that_is_not_the_same_leaves_it_to_the_kernels() -> None:
    graph = Live({"f": "text"}, source="# AOT ID: 3")
    records = [
        recorded("0/0/forward/lowered", "f", "text"),
        Wrapper(graph="0/0/forward/lowered", language="python", text=text_hash("# AOT ID: 1")),
    ]
    assert named_graphs([graph], records).graphs == {"0/0/forward": graph}


def test_a_subgraph_is_part_of_the_graph_that_calls_it() -> None:
    graph = Live({"f": "one", "g": "two"})
    kernels = [
        recorded("0/0/forward/true_graph_0/lowered", "g", "two"),
        recorded("0/0/forward/lowered", "f", "one"),
    ]
    named = named_graphs([graph], kernels)
    assert (named.graphs, named.lost) == ({"0/0/forward": graph}, [])
