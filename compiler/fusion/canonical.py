"""Canonicalisation for later steps: no single-element reductions, and no store that reads other
elements of the memory it writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tcw.compiler.fusion.dependencies import storage
from tcw.compiler.fusion.leaves import in_memory, leaves_of_graph, reads
from tcw.compiler.fusion.rows import elements
from tcw.compiler.loops.dtypes import REDUCED
from tcw.compiler.loops.expressions import Const, Expression, Load, Op, convert, walk
from tcw.compiler.loops.graph import (
    ARG,
    Buffer,
    Graph,
    Input,
    Map,
    Node,
    Reduce,
    Scan,
    Store,
    written_values,
)
from tcw.compiler.loops.layouts import Layout, compose_views
from tcw.compiler.loops.operators import identity


def canonical(graph: Graph, held: dict[str, list[str]]) -> list[Node]:
    """The graph's nodes, with single-element and empty reductions as maps, and safe stores.

    `held` records the nodes that compute part of another node.
    """
    memory = storage(graph)
    written = {
        name
        for node in graph.nodes
        if not isinstance(node, (Input, Buffer))
        for name in written_values(node)
    }
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Reduce):
            nodes.append(reduction(node))
        elif isinstance(node, Scan) and node.domain[node.digit] == 1:
            nodes.append(Map(node.name, node.dtype, node.domain, _same(node), node.origins))
        elif isinstance(node, Store):
            made = store(node, memory)
            held.update((part.name, [node.name]) for part in made[:-1])
            nodes.extend(made)
        else:
            nodes.append(node)
            if isinstance(node, Buffer) and node.name not in written:
                nodes.append(filled(node))
    return nodes


def filled(node: Buffer) -> Store:
    """A store for a buffer that has none, since some nest has to allocate it. It writes no
    elements, so that the buffer holds whatever the memory holds, as in eager; if the size is
    unknown, it writes zeros throughout."""
    zero = identity("sum", node.dtype)
    size = elements(node.shape)
    if not isinstance(size, int) or size == 0:
        return Store(f"{node.name}_empty", node.name, node.dtype, node.shape, (), zero)
    start = (Layout((0,), (1,)),)
    return Store(f"{node.name}_empty", node.name, node.dtype, (0,), start, zero)


def reduction(node: Reduce) -> Map | Reduce:
    """The reduction, or a map if it reduces no digits or no elements."""
    reduced = [s for s, away in zip(node.domain, node.reduced, strict=True) if away]
    if any(size == 0 for size in reduced) and elements(node.kept) != 0:
        empty = convert(identity(node.op, node.expression.dtype), node.dtype)
        return Map(node.name, node.dtype, node.kept, empty, node.origins)
    if any(size != 1 for size in reduced):
        return node
    if node.op in ARG:
        value: Expression = Const(0, node.dtype)
    else:
        value = _same(node)
    return Map(node.name, node.dtype, node.kept, value, node.origins)


def _same(node: Reduce | Scan) -> Expression:
    element = node.expression
    if node.op in ("any", "all") and element.dtype != "bool":
        element = Op("ne", (element, convert(Const(0, element.dtype), element.dtype)), "bool")
    return convert(element, node.dtype)


def store(node: Store, memory: dict[str, str]) -> list[Node]:
    """The store, through a separate value if it reads other elements of the memory it writes."""
    terms = [part for term in node.terms for part in walk(term.index)]
    for leaf in reads(node):
        if memory[leaf.value] != memory[node.buffer]:
            continue
        same = isinstance(leaf, Load) and leaf not in terms and leaf.value == node.buffer
        if same and leaf.view == compose_views((), node.view) and not node.terms:
            continue
        break
    else:
        return [node]
    value = Map(f"{node.name}_value", node.dtype, node.domain, node.expression, node.origins)
    made: list[Node] = [value]
    indices = []
    for i, term in enumerate(node.terms):
        index = Map(f"{node.name}_index_{i}", "int64", node.domain, term.index, node.origins)
        made.append(index)
        indices.append(replace(term, index=Load(index.name, (), "int64")))
    loaded = Load(value.name, (), node.dtype)
    return [*made, replace(node, expression=loaded, terms=tuple(indices))]


def narrowed(graph: Graph, held: dict[str, list[str]]) -> list[Node]:
    """Store reductions whose result is only read in another dtype in that dtype.

    A weight's gradient is summed in float32 and returned in bfloat16: without a conversion after
    it, nothing has to wait for the loop to end.
    """
    readers = Counter(leaf.value for leaf in leaves_of_graph(graph))
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
