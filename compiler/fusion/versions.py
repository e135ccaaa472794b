"""Versions of memory: whether a read may move past other nodes."""

from __future__ import annotations

from bisect import bisect_right

from tcw.compiler.fusion.dependencies import storage
from tcw.compiler.loops.graph import Buffer, Graph, Input, written_values


class Versions:
    """The places in the graph at which each memory is overwritten after its creation."""

    def __init__(self, graph: Graph) -> None:
        self.memory = storage(graph)
        self.writes: dict[str, list[int]] = {}
        for place, node in enumerate(graph.nodes):
            if not isinstance(node, (Input, Buffer)):
                for name in written_values(node):
                    self.writes.setdefault(self.memory[name], []).append(place)

    def version(self, value: str, place: int) -> int:
        """The number of writes to a value's memory before this place."""
        writes = self.writes.get(self.memory[value])
        return bisect_right(writes, place) if writes else 0

    def same(self, value: str, first: int, second: int) -> bool:
        """Whether a read of a value returns the same at two places."""
        return self.version(value, first) == self.version(value, second)
