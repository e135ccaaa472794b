"""The edges of the value graph: which node reads which, and how."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.fusion.counts import elements
from compiler.fusion.dependencies import Dependencies
from compiler.fusion.leaves import reads
from compiler.fusion.relation import Relation, relation
from compiler.loops.expressions import Gather, Load
from compiler.loops.graph import Call, Compute, Graph, extent


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
    found = Edges([[] for _ in range(count)], [[] for _ in range(count)], [])
    for place, node in enumerate(order.nodes):
        if isinstance(node, Call):
            found.leaves.append([])
            continue
        leaves = list(dict.fromkeys(reads(node)))
        found.leaves.append(leaves)
        size = elements(node.domain)
        for leaf in leaves:
            earlier = order.place.get(leaf.value)
            if earlier is None:
                continue
            producer = order.nodes[earlier]
            if isinstance(producer, Call):
                continue
            how = relation(leaf, size, extent(values[leaf.value]))
            edge = Edge(producer, node, how, earlier, place, earlier, place)
            found.of_reader[place].append(edge)
            found.of_producer[earlier].append(edge)
    return found
