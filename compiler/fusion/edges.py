"""The edges of the value graph: which node reads which, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tcw.compiler.fusion.dependencies import Dependencies
from tcw.compiler.fusion.leaves import reads
from tcw.compiler.fusion.rows import Mask, elements, kept_size, mask_of_broadcast
from tcw.compiler.loops.expressions import Gather, Load
from tcw.compiler.loops.graph import Call, Compute, Graph, extent
from tcw.compiler.loops.layouts import View, normalize
from tcw.compiler.loops.sizes import Size

RelationKind = Literal["identity", "broadcast", "order", "slice", "division", "gather"]


@dataclass(frozen=True, slots=True)
class Relation:
    """`identity`: element by element. `broadcast`: one element per row of `mask`. `order`: all
    elements in another order. `slice`: a subset. `division`: not expressible as a single layout.
    `gather`: at positions given by an index."""

    kind: RelationKind
    mask: Mask = ()


IDENTITY = Relation("identity")
GATHER = Relation("gather")


@dataclass(slots=True)
class Edge:
    """One node reads the value of another compute node."""

    producer: Compute
    reader: Compute
    relation: Relation
    producer_place: int
    reader_place: int
    producer_group: int = -1
    reader_group: int = -1


@dataclass(slots=True)
class Edges:
    """All edges of a graph, indexed from either end; calls have none."""

    of_reader: list[list[Edge]]
    """Place of a node -> its reads of other compute nodes, one edge per distinct access."""
    of_producer: list[list[Edge]]
    leaves: list[list[Load | Gather]]
    """Place of a node -> all its reads, without duplicates."""


def edges_of(graph: Graph, order: Dependencies) -> Edges:
    """All edges, by place."""
    values = graph.values()
    count = len(order.nodes)
    edges = Edges([[] for _ in range(count)], [[] for _ in range(count)], [])
    for place, node in enumerate(order.nodes):
        if isinstance(node, Call):
            edges.leaves.append([])
            continue
        leaves = list(dict.fromkeys(reads(node)))
        edges.leaves.append(leaves)
        size = elements(node.domain)
        for leaf in leaves:
            earlier = order.place.get(leaf.value)
            if earlier is None:
                continue
            producer = order.nodes[earlier]
            if isinstance(producer, Call):
                continue
            how = _access(leaf, size, extent(values[leaf.value]))
            edge = Edge(producer, node, how, earlier, place, earlier, place)
            edges.of_reader[place].append(edge)
            edges.of_producer[earlier].append(edge)
    return edges


def _access(leaf: Load | Gather, domain: Size, extent: Size) -> Relation:
    """How a domain of this size accesses a value of this extent through a leaf."""
    return GATHER if isinstance(leaf, Gather) else _relation(leaf.view, domain, extent)


@lru_cache(maxsize=1 << 14)
def _relation(view: View, domain: Size, extent: Size) -> Relation:
    if not view:
        return IDENTITY if domain == extent else Relation("slice")
    if len(view) > 1:
        return Relation("division")
    layout = normalize(view[0])
    if layout.is_identity():
        return IDENTITY if domain == extent else Relation("slice")
    mask = mask_of_broadcast(layout)
    if mask is not None:
        return Relation("broadcast", mask) if kept_size(mask) == extent else Relation("slice")
    if layout.offset == 0 and domain == extent and 0 not in layout.strides:
        return Relation("order")
    return Relation("slice")
