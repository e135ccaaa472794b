"""Canonicalisation for later steps: no single-element reductions, and no store that reads other
elements of the memory it writes."""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.fusion.counts import elements
from tcw.compiler.fusion.dependencies import storage
from tcw.compiler.fusion.leaves import reads
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
from tcw.compiler.loops.identities import identity
from tcw.compiler.loops.layouts import Layout, compose_views


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
