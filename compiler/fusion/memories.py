"""Which values are in memory, and in what form."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.fusion.counts import elements
from compiler.fusion.groups import Group
from compiler.fusion.leaves import reads
from compiler.fusion.through import operands
from compiler.loops.expressions import Gather
from compiler.loops.graph import Buffer, Graph, Map, Reduce, Scan, Store, shape_of
from compiler.loops.program import Memory


def stored_values(graph: Graph, groups: Sequence[Group]) -> frozenset[str]:
    """Values that outputs, calls, gathers or other groups read."""
    home = {node.name: group.id for group in groups for node in group.members}
    wanted = operands(graph)
    for group in groups:
        for member in group.members:
            if isinstance(member, Store):
                wanted.add(member.buffer)
            for leaf in reads(member):
                if isinstance(leaf, Gather) or home.get(leaf.value) != group.id:
                    wanted.add(leaf.value)
    return frozenset(wanted)


def memories(graph: Graph, stored: frozenset[str]) -> dict[str, Memory]:
    """The memory of every value that a nest writes, except the caller's memory."""
    found: dict[str, Memory] = {}
    for node in graph.nodes:
        if isinstance(node, (Map, Reduce, Scan, Buffer)) and node.name in stored:
            shape = shape_of(node)
            found[node.name] = Memory(node.name, node.dtype, shape, elements(shape))
    return found
