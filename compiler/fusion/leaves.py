"""The leaves of a node's expressions, cached, and nodes with other leaves or operands."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import TypeGuard

from tcw.compiler.loops.expressions import Expression, Gather, Iota, Load, rewrite
from tcw.compiler.loops.graph import (
    Call,
    Compute,
    Graph,
    Map,
    Node,
    Operand,
    Reduce,
    Scan,
    Store,
    expressions,
)

Leaf = Load | Gather | Iota


_KNOWN: dict[int, tuple[Compute, list[Leaf], list[Load | Gather]]] = {}
"""Keyed by id, since hashing a node walks it. Each entry keeps its node alive, and thus its id."""


def leaves(node: Compute) -> list[Leaf]:
    """A node's `Load`, `Gather` and `Iota` leaves in evaluation order. Do not modify the list."""
    return _known(node)[1]


def reads(node: Compute) -> list[Load | Gather]:
    """A node's loads and gathers in evaluation order. Do not modify the list."""
    return _known(node)[2]


def forget() -> None:
    """Release all nodes, after each graph."""
    _KNOWN.clear()


def _known(node: Compute) -> tuple[Compute, list[Leaf], list[Load | Gather]]:
    known = _KNOWN.get(id(node))
    if known is None:
        found = [part for part in expressions(node) if isinstance(part, (Load, Gather, Iota))]
        known = (node, found, [leaf for leaf in found if not isinstance(leaf, Iota)])
        _KNOWN[id(node)] = known
    return known


def map_leaves(node: Compute, leaf: Callable[[Expression], Expression]) -> Compute:
    """The node with each leaf of its expressions replaced."""
    expression = rewrite(node.expression, leaf)
    if isinstance(node, Store):
        terms = tuple(replace(term, index=rewrite(term.index, leaf)) for term in node.terms)
        return replace(node, expression=expression, terms=terms)
    return node if expression is node.expression else replace(node, expression=expression)


def rename_operands(argument: object, names: dict[str, str]) -> object:
    """A call's argument with its values renamed."""
    if isinstance(argument, Operand):
        renamed = names.get(argument.value)
        return argument if renamed is None else replace(argument, value=renamed)
    if isinstance(argument, tuple):
        return tuple(rename_operands(item, names) for item in argument)
    return argument


def operands(graph: Graph) -> set[str]:
    """Values that outputs and calls need in memory."""
    found = graph.returned()
    for node in graph.nodes:
        if isinstance(node, Call):
            found.update(operand.value for operand in node.operands())
            found.update((*node.mutates, *node.aliases))
    return found


def in_memory(graph: Graph) -> set[str]:
    """Values that outputs, calls or gathers need in memory, regardless of fusion."""
    return operands(graph) | {
        leaf.value for leaf in leaves_of_graph(graph) if isinstance(leaf, Gather)
    }


def leaves_of_graph(graph: Graph) -> Iterator[Load | Gather]:
    """What the graph's loops read, each as often as it is read."""
    return (leaf for _, leaf in uses(graph.nodes))


def uses(nodes: Iterable[Node]) -> Iterator[tuple[Compute, Load | Gather]]:
    """Each read of these nodes' loops, with the node that reads."""
    return ((node, leaf) for node in nodes if is_compute(node) for leaf in reads(node))


def stores_into(graph: Graph) -> dict[str, list[Store]]:
    """Buffers and inputs -> the stores that write them, in order."""
    found: dict[str, list[Store]] = {}
    for node in graph.nodes:
        if isinstance(node, Store):
            found.setdefault(node.buffer, []).append(node)
    return found


def unused_name(name: str, taken: Container[str]) -> str:
    """`name`, or `name_1`, … if it is taken."""
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


def is_compute(node: Node) -> TypeGuard[Compute]:
    return isinstance(node, (Map, Reduce, Scan, Store))
