"""The builder of a value graph."""

from __future__ import annotations

from typing import Any

from tcw.compiler.loops.expressions import Const
from tcw.compiler.loops.graph import Graph, Input, Map
from tcw.compiler.lowering.builder import Builder


class Counted(list[Any]):
    """Counts the nodes that slices of it have and that are iterated over."""

    seen = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.seen += len(found) if isinstance(at, slice) else 1
        return found

    def __iter__(self) -> Any:
        self.seen += len(self)
        return super().__iter__()


def test_whether_stores_may_write_a_value_does_not_look_at_all_nodes_again() -> None:
    graph = Graph("0/0/forward", Counted())
    builder = Builder(graph)
    for number in range(50):
        graph.nodes.append(Input(f"x{number}", "float32", (8,), (1,)))
        graph.nodes.append(Map(f"y{number}", "float32", (8,), Const(1.0, "float32"), ()))
        assert builder.is_storable(f"x{number}")
        assert not builder.is_storable(f"y{number}")
        assert builder.is_storable("x0")
    assert graph.nodes.seen <= 100
