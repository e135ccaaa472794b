"""A diagram of a graph: blocks in topological order, and the edges between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Literal

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Graph, Node
from tcw.compiler.trace.refs import Ref
from tcw.viewers.collected import grouped
from tcw.viewers.drawing.layers import Edge, targets_of
from tcw.viewers.panes.view import View
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
        return grouped((block.kernel, at) for at, block in enumerate(self.blocks) if block.kernel)

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


FoldOf = Literal["all", "group", "inputs", "module"]


class DrawnFold(str):
    """The key under which a part of a picture is opened."""

    graph: str
    of: FoldOf

    def __new__(cls, graph: str, of: FoldOf, name: str = "") -> DrawnFold:
        made = super().__new__(cls, f"{graph}:draw:{of}:{name}")
        made.graph, made.of = graph, of
        return made


def drawn_folds(unfolded: Iterable[str]) -> frozenset[DrawnFold]:
    """The unfolded keys that belong to pictures."""
    return frozenset(key for key in unfolded if isinstance(key, DrawnFold))


MOST = 300
"""A graph with more blocks is folded by module."""
CHUNKS = 150
"""Number of pieces of a graph that is too large and has no modules."""


def runs_of(graph: Graph, nodes: Sequence[int], depth: int) -> list[tuple[str, list[int]]]:
    """Runs of nodes of one module, as deep in the tree of modules as can be drawn; if even the
    outermost modules are too many, neighbours are joined."""
    runs: list[tuple[str, list[int]]] = []
    for levels in range(4 + depth, -1, -1):
        runs = _by_owner(graph, nodes, max(levels, 1) if depth else levels)
        if len(runs) <= MOST:
            break
    if len(runs) > 1 and any(module for module, _ in runs):
        named = [(module or "the model itself", run) for module, run in runs]
        return named if len(named) <= MOST else _joined(named)
    size = max(2, -(-len(nodes) // CHUNKS))
    chunks = [list(nodes[at : at + size]) for at in range(0, len(nodes), size)]
    return [(f"ops {at * size + 1}–{at * size + len(c)}", c) for at, c in enumerate(chunks)]


def _by_owner(graph: Graph, nodes: Sequence[int], levels: int) -> list[tuple[str, list[int]]]:
    by_owner = groupby(nodes, lambda index: _owner(graph.nodes[index].module, levels))
    return [(module, list(run)) for module, run in by_owner]


def _joined(runs: list[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
    size = -(-len(runs) // CHUNKS)
    found = []
    for at in range(0, len(runs), size):
        part = runs[at : at + size]
        found.append((f"{part[0][0]} – {part[-1][0]}", [index for _, run in part for index in run]))
    return found


@lru_cache(maxsize=4096)
def _owner(module: str, levels: int) -> str:
    """`layers.0.attention.q`: with 0 levels `layers.0`, the numbered block; with 1 one more …"""
    parts = module.split(".")
    base = next((at + 1 for at, part in enumerate(parts) if part.isdigit()), 1)
    return ".".join(parts[: base + levels])


def input_name(view: View, graph: Graph, node: Node) -> str:
    """What the user's program calls an input: `x`, `ln1.weight`; else the node's own name."""
    captured = _captured(view, graph, node)
    if captured is None:
        return node.name
    words = captured.target
    match = re.fullmatch(r"[LG]_(?:self_)?modules_(.+)_(?:parameters|buffers)_(.+?)_*", words)
    if match:
        path = match[1].replace("_modules_", ".").strip("_")
        return f"{path}.{match[2]}"
    match = re.fullmatch(r"[LG]_(.+?)_", words)
    return match[1] if match else captured.name


def _captured(view: View, graph: Graph, node: Node) -> Node | None:
    """The input of the captured graph that an input of a later graph stands for."""
    for _ in range(8):
        if graph.kind == "captured":
            return node
        parent = view.recording.graphs.get(graph.parent)
        origin = view.recording.nodes(graph.parent).get(node.origins[0]) if node.origins else None
        if parent is None or origin is None or origin.op not in ("placeholder", "get_attr"):
            return None
        graph, node = parent, origin
    return None


def is_weight(view: View, graph: Graph, node: Node) -> bool:
    if node.op == "get_attr":
        return True
    if node.op != "placeholder":
        return False
    captured = _captured(view, graph, node)
    words = captured.target if captured is not None else node.target
    return "_parameters_" in words or "_buffers_" in words
