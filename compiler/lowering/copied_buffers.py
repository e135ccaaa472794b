"""Buffers that are only copied into another buffer: their stores write there instead.

A join of joins (`block_diag`, a `cat` of padded tensors) would write each element twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from compiler.loops.expressions import Load
from compiler.loops.graph import (
    Buffer,
    Call,
    Compute,
    Graph,
    Node,
    Operand,
    Store,
    extent,
    operands,
    reads,
)
from compiler.loops.layouts import Layout, View, compose_views, row_major, strides_over
from compiler.loops.sizes import product


def written_where_copied(graph: Graph) -> None:
    """Remove each buffer whose only reader is a store that copies all of it to another buffer in
    the same order. Its stores take the place of that copy."""
    readers = Counter(name for node in graph.nodes for name in _read(node))
    readers.update(one.value for one in operands(graph.outputs))
    buffers = {node.name: node for node in graph.nodes if isinstance(node, Buffer)}
    for copy in [node for node in graph.nodes if isinstance(node, Store)]:
        source = _whole_copy(copy, buffers)
        if source is None or readers[source.name] != 1:
            continue
        stores = _stores_there(graph.nodes, source, copy)
        if stores is None:
            continue
        _replace(graph, source, copy, stores)
        del buffers[source.name]


def _read(node: Node) -> Iterator[str]:
    """The values that the node reads, one for each read."""
    if isinstance(node, Call):
        yield from (operand.value for operand in node.operands())
    elif isinstance(node, Compute):
        yield from (read.value for read in reads(node))


def _whole_copy(copy: Store, buffers: Mapping[str, Buffer]) -> Buffer | None:
    """The buffer whose elements, in their order, are what the store writes to another."""
    loaded = copy.expression
    if not isinstance(loaded, Load) or copy.terms or copy.mode != "set":
        return None
    if not all(layout.is_identity() for layout in loaded.view):
        return None
    source = buffers.get(loaded.value)
    if source is None or copy.buffer not in buffers or source.dtype != copy.dtype:
        return None
    return source if product(copy.domain) == extent(source) else None


def _stores_there(nodes: list[Node], source: Buffer, copy: Store) -> list[Store] | None:
    """The buffer's stores as stores to where the copy writes, or None if they cannot be made in
    its place: a later node writes what they read, an earlier one reads what they write, or their
    addresses would need a division."""
    found: list[Store] = []
    sources: set[str] = set()
    for node in nodes:
        if node is copy:
            return found
        if copy.buffer in _read(node):
            return None
        if isinstance(node, Store) and node.buffer == source.name:
            view = compose_views(copy.view, node.view or (row_major(node.domain),))
            if node.terms or len(view) > 1:
                return None
            found.append(replace(node, buffer=copy.buffer, view=view))
            sources.update(_read(node))
        elif sources and not sources.isdisjoint(_written(node)):
            return None
    return None


def _written(node: Node) -> tuple[str, ...]:
    if isinstance(node, Store):
        return (node.buffer,)
    return node.mutates if isinstance(node, Call) else ()


def _replace(graph: Graph, source: Buffer, copy: Store, stores: list[Store]) -> None:
    gone = {source.name, *(store.name for store in stores)}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node is copy:
            nodes += stores
        elif isinstance(node, (Buffer, Store)) and node.name in gone:
            continue
        else:
            nodes.append(node)
    graph.nodes[:] = nodes
    for name, shown in list(graph.tensors.items()):
        if shown.value == source.name:
            moved = _moved(shown, copy.buffer, copy.view)
            if moved is None:
                del graph.tensors[name]
            else:
                graph.tensors[name] = moved


def _moved(shown: Operand, target: str, view: View) -> Operand | None:
    """A tensor over a buffer as one over the buffer in which `view` places it, if it has strides
    there."""
    layouts = compose_views(view, (Layout(shown.shape, shown.strides, shown.offset),))
    if len(layouts) != 1:
        return None
    strides = strides_over(layouts[0], shown.shape)
    if strides is None:
        return None
    return Operand(target, shown.dtype, shown.shape, strides, layouts[0].offset)
