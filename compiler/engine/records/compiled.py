"""One graph on its way through our stages, and the information for its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import fx

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.graphs.labels import user_label
from tcw.compiler.graphs.provenance import distinct_lines
from tcw.compiler.loops.graph import Call, Graph, Map, Reduce, Scan, Store
from tcw.compiler.trace.records import Location, Node

Operation = Map | Reduce | Scan | Store | Call


@dataclass
class GraphState:
    """State shared by the records of one graph."""

    recorder: Recorder
    base: str
    """Id of AOTAutograd's graph, such as `0/0/forward`."""
    compile_id: str
    parents: frozenset[str]
    """Names of the nodes of AOTAutograd's graph."""
    user_outputs: int
    """The number of leading outputs that are not saved for the backward."""
    predicted: bool = False
    """The code is for a GPU that is not there."""
    nodes: dict[str, fx.Node] = field(default_factory=dict)
    """Nodes of the lowered graph by name, in graph order."""
    described: dict[str, Node] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    """`op3` -> node of the value graph."""
    numbers: dict[str, str] = field(default_factory=dict)
    """Name of a node of the value graph -> `op3`."""
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a nest or call -> the operations that it computes, including inlined ones."""
    parts: dict[object, int] = field(default_factory=dict)
    """See tcw.compiler.engine.records.lowered."""
    kernels: dict[str, str] = field(default_factory=dict)
    """Name of a nest or call -> `k4 softmax`."""

    @property
    def id(self) -> str:
        """Id of the lowered graph, such as `0/0/forward/lowered`."""
        return f"{self.base}/lowered"

    def take(self, graph: Graph) -> None:
        """Number the operations of a value graph in order: `op0`, `op1`, …"""
        for node in graph.nodes:
            if isinstance(node, Operation):
                name = f"op{len(self.operations)}"
                self.operations[name] = node
                self.numbers[node.name] = name

    def in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        """These nodes of the lowered graph, in graph order."""
        wanted = set(names)
        return tuple(name for name in self.nodes if name in wanted)

    def operations_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """`op1`, `op2`, … of these nodes of the value graph, in graph order."""
        wanted = {self.numbers[name] for name in names if name in self.numbers}
        return tuple(name for name in self.operations if name in wanted)

    def label(self, names: Iterable[str]) -> str:
        """The user's operations behind these nodes of the lowered graph."""
        return user_label((self.nodes[name] for name in self.in_order(names)), {})

    def lines(self, names: Iterable[str]) -> tuple[tuple[Location, ...], bool]:
        """The distinct user lines of these nodes, in file order, and whether all are inferred."""
        return distinct_lines(self.described, names)
