"""Buffers that are only copied into another buffer: their stores write there instead.

A join of joins (`block_diag`, a `cat` of padded tensors) would write each element twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from tcw.compiler.loops.expressions import Load, through
from tcw.compiler.loops.graph import (
    Buffer,
    Call,
    Compute,
    Graph,
    Node,
    Operand,
    Store,
    extent,
    reads,
    written_values,
)
from tcw.compiler.loops.layouts import (
    Layout,
    View,
    compose_views,
    normalize,
    row_major,
    strides_over,
)
from tcw.compiler.loops.sizes import product


def written_where_copied(graph: Graph) -> None:
    """Remove each buffer whose only reader is a store that copies all of it to another buffer in
    the same order. Its stores take the place of that copy."""
    copies = [node for node in graph.nodes if isinstance(node, Store) and _loaded(node)]
    if copies:
        _Stores(graph).written_directly(copies)


def _loaded(copy: Store) -> str:
    """The value whose elements, in their order, the store writes without a change, or ""."""
    loaded = copy.expression
    if not isinstance(loaded, Load) or copy.terms or copy.mode != "set":
        return ""
    return loaded.value if all(layout.is_identity() for layout in loaded.view) else ""


class _Stores:
    """The stores of a graph, and who reads and writes which value, and when."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = {node.name: node for node in graph.nodes}
        self.when: dict[str, tuple[int, ...]] = {}
        """Name of a node -> its place. What takes the place of another node is after it."""
        self.readers: dict[str, list[str]] = defaultdict(list)
        self.writers: dict[str, list[str]] = defaultdict(list)
        for place, node in enumerate(graph.nodes):
            self.when[node.name] = (place,)
            for value in _read(node):
                self.readers[value].append(node.name)
            for value in written_values(node):
                self.writers[value].append(node.name)
        self.shown: dict[str, list[str]] = defaultdict(list)
        """Value -> the names of the tensors over it."""
        for name, tensor in graph.tensors.items():
            self.shown[tensor.value].append(name)
        self.returned = graph.returned()

    def written_directly(self, copies: list[Store]) -> None:
        for copy in copies:
            node = self.nodes[copy.name]
            assert isinstance(node, Store)
            source = self.nodes.get(_loaded(node))
            if not isinstance(source, Buffer) or not self.copies_all(node, source):
                continue
            stores = self.stores_there(node, source)
            if stores is not None:
                self.replace(node, source, stores)
        order = sorted(self.nodes.values(), key=lambda node: self.when[node.name])
        self.graph.nodes[:] = order

    def copies_all(self, copy: Store, source: Buffer) -> bool:
        """Whether the store makes the only use of the buffer: it copies all of it to a buffer that
        nothing has read so far."""
        return (
            isinstance(self.nodes.get(copy.buffer), Buffer)
            and source.dtype == copy.dtype
            and product(copy.domain) == extent(source)
            and self.readers[source.name] == [copy.name]
            and source.name not in self.returned
            and all(self.when[name] > self.when[copy.name] for name in self.readers[copy.buffer])
        )

    def stores_there(self, copy: Store, source: Buffer) -> list[Store] | None:
        """The buffer's stores as stores to where the copy writes, or None if they cannot be made in
        its place: something else writes what they read before, or their addresses would need a
        division. A store of one run of elements is cut at the ends of rows there."""
        stores: list[Store] = []
        for name in sorted(self.writers[source.name], key=self.when.__getitem__):
            node = self.nodes[name]
            if not isinstance(node, Store) or node.terms or self.when[name] > self.when[copy.name]:
                return None
            pieces = _composed(copy.view, node)
            if not pieces:
                return None
            for value in _read(node):
                between = (self.when[writer] for writer in self.writers[value])
                if any(self.when[name] < one < self.when[copy.name] for one in between):
                    return None
            for k, piece in enumerate(pieces):
                stores.append(replace(piece, buffer=copy.buffer, name=self.fresh(name, k)))
        return stores

    def fresh(self, name: str, k: int) -> str:
        """The name of the k-th piece of a store; the first one keeps the store's."""
        found = name
        while k and found in self.nodes:
            found = f"{name}_{k}"
            k += 1
        return found

    def replace(self, copy: Store, source: Buffer, stores: list[Store]) -> None:
        del self.nodes[source.name], self.nodes[copy.name]
        self.writers[copy.buffer].remove(copy.name)
        for k, store in enumerate(stores):
            self.nodes[store.name] = store
            self.when[store.name] = (*self.when[copy.name], k)
            self.writers[copy.buffer].append(store.name)
            for value in _read(store):
                if store.name not in self.readers[value]:
                    self.readers[value].append(store.name)
        for name in self.shown.pop(source.name, ()):
            moved = _moved(self.graph.tensors[name], copy.buffer, copy.view)
            if moved is None:
                del self.graph.tensors[name]
            else:
                self.graph.tensors[name] = moved
                self.shown[copy.buffer].append(name)


def _composed(outer: View, store: Store) -> list[Store]:
    """The store seen through the view that copies its buffer: as it is, or cut into a part of a
    row, whole rows and another part, if each of these has one layout. Empty if none will do."""
    own = store.view or (row_major(store.domain),)
    view = compose_views(outer, own)
    if len(view) <= 1 or not outer:
        return [replace(store, view=view)]
    inner = normalize(own[0])
    begin, row = inner.offset, product(normalize(outer[-1]).shape[1:])
    size = inner.size
    if len(own) > 1 or inner.strides != (1,):
        return []
    if not (isinstance(begin, int) and isinstance(size, int) and isinstance(row, int)):
        return []
    ends = {-(-begin // row) * row, (begin + size) // row * row}
    cuts = sorted({begin, begin + size, *(end for end in ends if begin < end < begin + size)})
    pieces: list[Store] = []
    for low, high in pairwise(cuts):
        part = Layout((high - low,), (1,), low - begin)
        view = compose_views(outer, (Layout(part.shape, (1,), low),))
        if len(view) > 1:
            return []
        expression = through(store.expression, (part,), size, high - low)
        pieces.append(replace(store, domain=part.shape, view=view, expression=expression))
    return pieces


def _read(node: Node) -> Iterator[str]:
    """The values that the node reads, one for each read."""
    if isinstance(node, Call):
        yield from (operand.value for operand in node.operands())
    elif isinstance(node, Compute):
        yield from (read.value for read in reads(node))


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
