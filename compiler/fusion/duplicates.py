"""Common subexpression elimination: nodes that compute the same value from the same memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.dependencies import Versions, read_values
from tcw.compiler.fusion.leaves import map_leaves, rename_operands
from tcw.compiler.loops.expressions import Expression, Gather, Load
from tcw.compiler.loops.graph import Call, Graph, Map, Node, Reduce, Scan, Store


def without_duplicates(graph: Graph, gate: Gate, held: dict[str, list[str]]) -> list[Node]:
    """The graph's nodes, with only the first of equal maps, reductions and scans.

    Graph outputs, and values that a call writes or aliases, retain their own memory. `held` records
    which nodes each node also stands for, so that a veto on a duplicate applies to the remaining
    one.
    """
    versions = Versions(graph)
    own = graph.returned()
    for node in graph.nodes:
        if isinstance(node, Call):
            own.update((*node.mutates, *node.aliases))
    first: dict[Hashable, str] = {}
    names: dict[str, str] = {}
    kept: list[Node] = []

    def leaf(part: Expression) -> Expression:
        if isinstance(part, (Load, Gather)) and part.value in names:
            return replace(part, value=names[part.value])
        return part

    for place, node in enumerate(graph.nodes):
        if isinstance(node, Call):
            kept.append(_renamed(node, names) if names else node)
            continue
        if not isinstance(node, (Map, Reduce, Scan, Store)):
            kept.append(node)
            continue
        node = map_leaves(node, leaf) if names else node
        if isinstance(node, Store):
            kept.append(node)
            continue
        read = tuple(versions.version(value, place) for value in read_values(node))
        key = (replace(node, name="", origins=()), read)
        found = first.setdefault(key, node.name)
        both = (found, *held.get(found, ())), (node.name,)
        if found != node.name and node.name not in own and not gate.veto(graph.name, *both):
            names[node.name] = found
            held.setdefault(found, []).append(node.name)
        else:
            kept.append(node)
    return kept


def carried(nodes: Iterable[str], held: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """These nodes and those that they also stand for, without duplicates: what a veto may name."""
    return tuple(dict.fromkeys(name for node in nodes for name in (node, *held.get(node, ()))))


def _renamed(call: Call, names: dict[str, str]) -> Call:
    arguments = rename_operands(call.arguments, names)
    keywords = rename_operands(call.keywords, names)
    assert isinstance(arguments, tuple)
    assert isinstance(keywords, tuple)
    if arguments == call.arguments and keywords == call.keywords:
        return call
    return replace(call, arguments=arguments, keywords=keywords)
