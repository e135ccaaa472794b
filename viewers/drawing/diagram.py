"""A diagram of a graph: blocks in topological order, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Graph
from tcw.compiler.trace.refs import Ref
from tcw.viewers.collected import grouped
from tcw.viewers.drawing.folds import DrawnFold
from tcw.viewers.drawing.layers import Edge, targets_of
from tcw.viewers.words import plural

BlockKind = Literal["input", "weight", "group", "call", "op", "module"]


@dataclass(frozen=True, slots=True)
class Block:
    """One box. Words are as recorded: views make them plain."""

    key: str
    title: str
    lines: tuple[str, ...]
    nodes: tuple[int, ...]
    """Indices in the graph's nodes."""
    kind: BlockKind
    hue: int = -1
    """The index of the group's colour; -1 for none."""
    kernel: str = ""
    fold: DrawnFold | None = None
    """Key under which `⏎` opens it, or closes what it was opened from; None if it does neither."""
    operations: tuple[str, ...] = ()
    """Scheduler nodes of a fusion group."""


@dataclass(frozen=True, eq=False)
class Diagram:
    """A diagram of a graph: blocks in topological order, and the edges between them."""

    graph: Graph
    scale: int
    blocks: tuple[Block, ...]
    edges: tuple[Edge, ...]
    weights: int
    """Weights that are hidden."""
    groups: int
    legend: tuple[tuple[int, str, int], ...]
    """(hue, words, nodes) of each group in sight, in order; hue -1 for library calls."""

    @cached_property
    def of_node(self) -> dict[str, int]:
        """Name of a node -> its block."""
        nodes = self.graph.nodes
        return {
            nodes[i].name: number for number, block in enumerate(self.blocks) for i in block.nodes
        }

    @cached_property
    def of_kernel(self) -> dict[str, list[int]]:
        return grouped((one.kernel, at) for at, one in enumerate(self.blocks) if one.kernel)

    @cached_property
    def users(self) -> dict[str, list[int]]:
        """Name of a node -> the nodes that read it."""
        nodes = enumerate(self.graph.nodes)
        return grouped((name, index) for index, node in nodes for name in node.inputs)

    @cached_property
    def readers(self) -> list[list[int]]:
        """Block -> the blocks that read it."""
        return targets_of(len(self.blocks), self.edges)

    @cached_property
    def sources(self) -> list[list[int]]:
        """Block -> the blocks that it reads."""
        return targets_of(len(self.blocks), (edge[::-1] for edge in self.edges))

    def ref(self, number: int) -> Ref:
        """What selecting a block selects: its kernel, its node, or the last node in it."""
        block = self.blocks[number]
        if block.kernel and block.kind in ("group", "call"):
            return refs.kernel(block.kernel)
        return refs.node(self.graph.id, self.graph.nodes[block.nodes[-1]].name)

    def blocks_of(self, ref: Ref) -> list[int]:
        """The blocks that show a thing."""
        kind = refs.kind(ref) if ref else ""
        if kind == "fx":
            graph, name = refs.split_node(ref)
            number = self.of_node.get(name) if graph == self.graph.id else None
            return [] if number is None else [number]
        if kind == "k":
            return self.of_kernel.get(refs.split_kernel(ref)[0], [])
        return []

    @property
    def words(self) -> str:
        """`53 nodes, 11 groups, weights hidden`."""
        parts = [plural(len(self.graph.nodes), "node")]
        if self.groups:
            parts.append(plural(self.groups, "group"))
        if self.weights:
            parts.append("weights hidden")
        return ", ".join(parts)
