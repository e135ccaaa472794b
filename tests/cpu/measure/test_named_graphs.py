"""Live graphs are found by the texts that were recorded of their kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compiler.measure.kernels import NotAlone
from compiler.measure.named_graphs import named_graphs
from compiler.trace.records import Kernel
from compiler.trace.writer import text_hash


@dataclass(eq=False)
class Live:
    """A compiled graph that only knows its texts."""

    texts: dict[str, str] = field(default_factory=dict)
    arguments: list[Any] | None = None

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
