"""A graph that is too large to draw, folded by module."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from tcw.compiler.trace.records import Graph

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
