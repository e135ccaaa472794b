"""Reordering: a map's iteration order is free unless memory shows it, so it follows its readers."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.fusion.leaves import is_compute, map_leaves, reads
from tcw.compiler.fusion.rows import elements
from tcw.compiler.loops.expressions import Expression, Gather, Iota, Load, through, walk
from tcw.compiler.loops.graph import Graph, Map, Node
from tcw.compiler.loops.layouts import View, dense_order, normalize


def reordered(graph: Graph, fixed: set[str]) -> list[Node]:
    """The graph's nodes, with each map in the order in which all of its readers read it.

    `fixed` maps keep their order, which is visible in memory.
    """
    nodes = list(graph.nodes)
    views: dict[str, dict[View, None]] = {}
    readers: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        if is_compute(node):
            for leaf in reads(node):
                views.setdefault(leaf.value, {})[leaf.view] = None
                where = readers.setdefault(leaf.value, [])
                if not where or where[-1] != place:
                    where.append(place)
    for place in range(len(nodes) - 1, -1, -1):
        node = nodes[place]
        if not isinstance(node, Map) or node.name in fixed:
            continue
        seen = list(views.get(node.name, ()))
        if len(seen) != 1 or not seen[0] or not _bijection(node, seen[0]):
            continue
        view = seen[0]
        whole = elements(node.domain)
        expression = through(node.expression, view, whole, whole)
        if _chains(expression) > _chains(node.expression):
            continue
        domain = normalize(view[0]).shape
        nodes[place] = moved = replace(node, domain=domain, expression=expression)
        for reader in readers[node.name]:
            nodes[reader] = _straight(nodes[reader], node.name)
        for value in dict.fromkeys(leaf.value for leaf in reads(moved)):
            views[value] = _views_of(nodes, readers[value], value)
    return nodes


def _views_of(nodes: list[Node], readers: list[int], value: str) -> dict[View, None]:
    found: dict[View, None] = {}
    for place in readers:
        node = nodes[place]
        if is_compute(node):
            found.update((leaf.view, None) for leaf in reads(node) if leaf.value == value)
    return found


def _bijection(node: Map, view: View) -> bool:
    if len(view) != 1:
        return False
    layout = normalize(view[0])
    if layout.offset != 0 or layout.size != elements(node.domain) or layout.is_identity():
        return False
    return dense_order(layout.shape, layout.strides) is not None


def _chains(expression: Expression) -> int:
    """Layouts beyond the first in an expression's views: divisions that a nest would perform."""
    return sum(
        max(0, len(part.view) - 1)
        for part in walk(expression)
        if isinstance(part, (Load, Gather, Iota))
    )


def _straight(node: Node, value: str) -> Node:
    def leaf(part: Expression) -> Expression:
        if isinstance(part, Load) and part.value == value:
            return replace(part, view=())
        return part

    assert is_compute(node)
    return map_leaves(node, leaf)
