"""Reductions whose result is only read in another dtype are stored in that dtype.

A weight's gradient is summed in float32 and returned in bfloat16: without a conversion after it,
nothing has to wait for the loop to end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tcw.compiler.fusion.counts import elements
from tcw.compiler.fusion.through import in_memory, leaves
from tcw.compiler.loops.dtypes import REDUCED
from tcw.compiler.loops.expressions import Load, Op
from tcw.compiler.loops.graph import ARG, Graph, Map, Node, Reduce


def narrowed(graph: Graph, held: dict[str, list[str]]) -> list[Node]:
    """The graph's nodes, with such a reduction in place of it and of its conversion.

    `held` records the nodes that compute part of another node.
    """
    readers = Counter(leaf.value for leaf in leaves(graph))
    fixed = in_memory(graph)
    sums = {
        node.name: node
        for node in graph.nodes
        if isinstance(node, Reduce)
        and node.dtype == "float32"
        and node.op not in ARG
        and readers[node.name] == 1
        and node.name not in fixed
    }
    converted: dict[str, Map] = {}
    for node in graph.nodes:
        if isinstance(node, Map) and node.dtype in REDUCED:
            source = _converted(node, sums, readers[node.name])
            if source:
                converted[source] = node
    gone = {node.name for node in converted.values()}
    nodes: list[Node] = []
    for node in graph.nodes:
        wanted = converted.get(node.name) if isinstance(node, Reduce) else None
        if isinstance(node, Reduce) and wanted is not None:
            origins = tuple(dict.fromkeys((*node.origins, *wanted.origins)))
            held.setdefault(wanted.name, []).extend((node.name, *held.get(node.name, ())))
            nodes.append(replace(node, name=wanted.name, dtype=wanted.dtype, origins=origins))
        elif node.name not in gone:
            nodes.append(node)
    return nodes


def _converted(node: Map, sums: dict[str, Reduce], readers: int) -> str:
    """The reduction that a map only converts, element by element; "" if there is none.

    A store rounds, so a final `rounded` may be dropped, but not if this graph reads the map: its
    readers must see the rounded value.
    """
    expression = node.expression
    if isinstance(expression, Op) and expression.name == "rounded" and not readers:
        (expression,) = expression.args
    if not isinstance(expression, Op) or expression.name != "convert":
        return ""
    (argument,) = expression.args
    if not isinstance(argument, Load) or argument.view or argument.value not in sums:
        return ""
    same = elements(sums[argument.value].kept) == elements(node.domain)
    return argument.value if same else ""
