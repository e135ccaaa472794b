"""Index-set splitting: a pointwise reader of a cat runs once per piece of the cat.

Rotary embeddings multiply `cat(-second, first)` by a sine. If the loop over the result is split at
the piece boundaries, each part reads its piece's memory directly and the cat is never written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from tcw.compiler.control.gate import Gate
from tcw.compiler.fusion.dependencies import Versions, apart
from tcw.compiler.fusion.duplicates import carried
from tcw.compiler.fusion.leaves import (
    in_memory,
    is_compute,
    leaves_of_graph,
    operands,
    reads,
    stores_into,
)
from tcw.compiler.fusion.rows import elements
from tcw.compiler.fusion.weights import instructions
from tcw.compiler.loops.expressions import Expression, Load, leaf_through, rewrite, through
from tcw.compiler.loops.graph import Buffer, Call, Graph, Map, Node, Store
from tcw.compiler.loops.layouts import (
    View,
    compose_views,
    dense_order,
    normalize,
    permute,
)
from tcw.compiler.loops.printer.print_graphs import node_text
from tcw.compiler.loops.sizes import Size, add, product
from tcw.compiler.protocol.decision import Decision, Detail

KIND = "split"
SPLIT = "split"
WHOLE = "whole"
MEANS = "whole: the cat is written and read again; split: one loop per piece, and no cat"
PIECES = 4
"""Maximum number of loops that a loop is split into."""
WORK = 16
"""Maximum instructions per element of a piece, averaged over the pieces; the parts repeat them."""


def split_at_pieces(graph: Graph, gate: Gate, names: dict[str, list[str]]) -> list[Node]:
    """The graph's nodes, with maps over a cat as stores of their pieces.

    Only maps whose value calls and outputs read from memory, and that have no other readers to fuse
    with. They must read only memory (together with the maps that only they read), since the parts
    could not join the nest of a row.
    """
    cats = _cats(graph)
    if not cats:
        return graph.nodes
    only_in_memory = operands(graph) - {leaf.value for leaf in leaves_of_graph(graph)}
    versions = Versions(graph)
    places = {n.name: p for p, n in enumerate(graph.nodes) if not isinstance(n, Call)}
    taken = set(places)
    once = _read_once(graph)
    computed = {n.name for n in graph.nodes if is_compute(n)}
    nodes: list[Node] = []
    for place, node in enumerate(graph.nodes):
        path: list[str] = []
        buffer = ""
        if isinstance(node, Map) and node.name in only_in_memory:
            original = node
            node = _expanded(node, once, versions, places, path)
            buffer = _cat_of(node, cats)
            if any(leaf.value in computed for leaf in reads(node)):
                buffer = ""
            if not buffer:
                node = original
        pieces = cats.get(buffer, [])
        parts = _parts(node, buffer, pieces, taken) if isinstance(node, Map) and buffer else None
        moved = all(
            versions.same(leaf.value, places[piece.name], place)
            for piece in pieces
            for leaf in reads(piece)
        )
        if parts is None or not moved:
            nodes.append(graph.nodes[place])
            continue
        reason = f"{buffer} need not be written: {len(parts)} loops, one per piece"
        pair = (node.name, buffer)
        decision = Decision(
            graph.name,
            KIND,
            pair,
            SPLIT,
            (SPLIT, WHOLE),
            "pieces",
            reason,
            {"pieces": len(parts)},
            detail=_detail(parts) if gate.asks else None,
        )
        held = [piece.name for piece in pieces]
        sides = carried((*held, *path), names), carried((node.name, *path), names)
        done = gate.unless_vetoed(decision, WHOLE, *sides) == SPLIT
        if not done:
            nodes.append(graph.nodes[place])
            continue
        assert isinstance(node, Map)
        nodes += [Buffer(node.name, node.dtype, node.domain), *parts]
        for part, piece in zip(parts, pieces, strict=True):
            taken.add(part.name)
            names.setdefault(part.name, []).extend(carried((node.name, piece.name, *path), names))
    return nodes


def _detail(parts: list[Store]) -> Callable[[], Detail]:
    return lambda: Detail(
        origins=tuple(dict.fromkeys(origin for part in parts for origin in part.origins)),
        if_fused="".join(f"{node_text(part)}\n" for part in parts),
        means=MEANS,
    )


def _read_once(graph: Graph) -> dict[str, Map]:
    """Maps with exactly one read that need not be in memory."""
    count = Counter(leaf.value for leaf in leaves_of_graph(graph))
    fixed = in_memory(graph)
    return {
        node.name: node
        for node in graph.nodes
        if isinstance(node, Map) and node.name not in fixed and count[node.name] == 1
    }


def _expanded(
    node: Map, once: dict[str, Map], versions: Versions, places: dict[str, int], path: list[str]
) -> Map:
    """The map with everything that only it reads inlined; `path` receives the inlined names."""
    here = places[node.name]

    def leaf(part: Expression) -> Expression:
        source = once.get(part.value) if isinstance(part, Load) else None
        if source is None or not isinstance(part, Load):
            return part
        there = places[source.name]
        if not all(versions.same(read.value, there, here) for read in reads(source)):
            return part
        path.append(source.name)
        sizes = elements(source.domain), elements(node.domain)
        return rewrite(through(source.expression, part.view, *sizes), leaf)

    return replace(node, expression=rewrite(node.expression, leaf))


def _cats(graph: Graph) -> dict[str, list[Store]]:
    """Buffers completely filled by stores of disjoint pieces, in set mode."""
    buffers = {node.name: node for node in graph.nodes if isinstance(node, Buffer)}
    found: dict[str, list[Store]] = {}
    for name, stores in stores_into(graph).items():
        if name not in buffers:
            continue
        covered: Size = 0
        for store in stores:
            covered = add(covered, elements(store.domain))
        plain = all(s.mode == "set" and not s.terms and len(s.view) == 1 for s in stores)
        whole = covered == elements(buffers[name].shape) and 1 < len(stores) <= PIECES
        if plain and whole and all(apart(a, b) for a, b in pairwise(stores)):
            found[name] = stores
    return found


def _cat_of(node: Map, cats: dict[str, list[Store]]) -> str:
    """The cat that a map reads through exactly one load, or "" if there is none."""
    views = {(leaf.value, leaf) for leaf in reads(node) if leaf.value in cats}
    if len(views) != 1:
        return ""
    ((name, leaf),) = views
    return name if isinstance(leaf, Load) else ""


def _parts(node: Map, buffer: str, pieces: list[Store], taken: set[str]) -> list[Store] | None:
    """One store per piece, over the piece's domain; None if the view has no inverse."""
    load = next(leaf for leaf in reads(node) if leaf.value == buffer)
    back = inverse(load.view, elements(node.domain))
    if back is None or sum(instructions(piece) for piece in pieces) > WORK * len(pieces):
        return None
    parts: list[Store] = []
    for number, piece in enumerate(pieces):
        view = compose_views(back, piece.view)
        seen = elements(piece.domain)
        if len(view) != 1:
            return None

        def leaf(part: Expression, piece: Store = piece, view: View = view) -> Expression:
            if isinstance(part, Load) and part.value == buffer:
                return piece.expression
            return leaf_through(part, view)

        name = f"{node.name}_part_{number}"
        if name in taken or any(size == 0 for size in piece.domain) or seen == 0:
            return None
        parts.append(
            Store(
                name,
                node.name,
                node.dtype,
                piece.domain,
                view,
                rewrite(node.expression, leaf),
                origins=tuple(dict.fromkeys((*piece.origins, *node.origins))),
            )
        )
    return parts


def inverse(view: View, size: Size) -> View | None:
    """The inverse of a view that only reorders `size` elements; None for other views."""
    if not view:
        return ()
    if len(view) > 1:
        return None
    layout = normalize(view[0])
    if layout.offset != 0 or product(layout.shape) != size:
        return None
    order = dense_order(layout.shape, layout.strides)
    return None if order is None else compose_views((), (permute(layout.shape, order),))
