"""Index-set splitting: what reads a cat element by element runs once for each piece of it.

Rotary embeddings multiply `cat(-second, first)` by a sine. With the loop over the result split at
the borders of the pieces, each part reads the memory of its piece and the cat is never written.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from compiler.control.decisions import Decision, Gate
from compiler.fusion.counts import elements
from compiler.fusion.dependencies import apart
from compiler.fusion.leaves import reads
from compiler.fusion.through import is_compute, through
from compiler.fusion.versions import Versions
from compiler.fusion.weights import instructions
from compiler.loops.expressions import Expression, Load, rewrite
from compiler.loops.graph import Buffer, Call, Graph, Map, Node, Operand, Store
from compiler.loops.layouts import Layout, View, compose_views, normalize, row_major
from compiler.loops.sizes import Size, add, multiply, product

KIND = "split"
SPLIT = "split"
WHOLE = "whole"
PIECES = 4
"""A loop is split into so many at most."""
WORK = 16
"""Instructions of a piece's element that may be done once more for each further reader."""


@dataclass(frozen=True, slots=True)
class Split:
    """One map that reads a cat."""

    id: str
    node: str
    buffer: str
    split: bool
    reason: str


def split_at_pieces(
    graph: Graph, gate: Gate, names: dict[str, list[str]]
) -> tuple[list[Node], list[Split]]:
    """The graph's nodes, with maps over a cat as stores of their pieces.

    Only maps that end in memory for calls and outputs, which have no more readers to fuse with.
    """
    cats = _cats(graph)
    if not cats:
        return graph.nodes, []
    finals = _finals(graph)
    versions = Versions(graph)
    places = {node.name: place for place, node in enumerate(graph.nodes)}
    taken = set(places)
    considered: list[Split] = []
    nodes: list[Node] = []
    for place, node in enumerate(graph.nodes):
        buffer = _cat_of(node, cats) if isinstance(node, Map) and node.name in finals else ""
        pieces = cats.get(buffer, [])
        parts = _parts(node, buffer, pieces, taken) if isinstance(node, Map) and buffer else None
        moved = all(
            versions.same(leaf.value, places[piece.name], place)
            for piece in pieces
            for leaf in reads(piece)
        )
        if parts is None or not moved:
            nodes.append(node)
            continue
        reason = f"{buffer} need not be written: {len(parts)} loops, one for each piece"
        pair = (node.name, buffer)
        decision = Decision(graph.name, KIND, pair, SPLIT, (SPLIT, WHOLE), "pieces", reason)
        held = [piece.name for piece in pieces]
        done = not gate.veto(graph.name, held, (node.name,)) and gate.decide(decision) == SPLIT
        considered.append(Split(decision.id, node.name, buffer, done, reason))
        if not done:
            nodes.append(node)
            continue
        assert isinstance(node, Map)
        nodes += [Buffer(node.name, node.dtype, node.domain), *parts]
        for part, piece in zip(parts, pieces, strict=True):
            taken.add(part.name)
            names.setdefault(part.name, []).extend((node.name, piece.name))
    return nodes, considered


def _cats(graph: Graph) -> dict[str, list[Store]]:
    """Buffers that stores of disjoint pieces fill, in one go and whole."""
    buffers = {node.name: node for node in graph.nodes if isinstance(node, Buffer)}
    pieces: dict[str, list[Store]] = {}
    for node in graph.nodes:
        if isinstance(node, Store) and node.buffer in buffers:
            pieces.setdefault(node.buffer, []).append(node)
    found: dict[str, list[Store]] = {}
    for name, stores in pieces.items():
        covered: Size = 0
        for store in stores:
            covered = add(covered, elements(store.domain))
        plain = all(s.mode == "set" and not s.terms and len(s.view) == 1 for s in stores)
        whole = covered == elements(buffers[name].shape) and 1 < len(stores) <= PIECES
        if plain and whole and all(apart(a, b) for a, b in pairwise(stores)):
            found[name] = stores
    return found


def _finals(graph: Graph) -> set[str]:
    """Values that calls and outputs read, and no other node."""
    found = {out.value for out in graph.outputs if isinstance(out, Operand)}
    read: set[str] = set()
    for node in graph.nodes:
        if isinstance(node, Call):
            found.update(operand.value for operand in node.operands())
        elif is_compute(node):
            read.update(leaf.value for leaf in reads(node))
    return found - read


def _cat_of(node: Map, cats: dict[str, list[Store]]) -> str:
    """The one cat that a map reads, in one way."""
    views = {(leaf.value, leaf) for leaf in reads(node) if leaf.value in cats}
    if len(views) != 1:
        return ""
    ((name, leaf),) = views
    return name if isinstance(leaf, Load) else ""


def _parts(node: Map, buffer: str, pieces: list[Store], taken: set[str]) -> list[Store] | None:
    """A store for each piece, over the piece's domain; None where the view has no inverse."""
    load = next(leaf for leaf in reads(node) if leaf.value == buffer)
    back = inverse(load.view, elements(node.domain))
    if back is None or sum(instructions(piece) for piece in pieces) > WORK * len(pieces):
        return None
    whole = elements(node.domain)
    parts: list[Store] = []
    for number, piece in enumerate(pieces):
        view = compose_views(back, piece.view)
        seen = elements(piece.domain)
        if len(view) != 1:
            return None

        def leaf(part: Expression, piece: Store = piece, view: View = view) -> Expression:
            if isinstance(part, Load) and part.value == buffer:
                return piece.expression
            return through(part, view, whole, elements(piece.domain))

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
    """The view that leads back, of one that only reorders `size` elements; else None."""
    if not view:
        return ()
    if len(view) > 1:
        return None
    layout = normalize(view[0])
    if layout.offset != 0 or product(layout.shape) != size:
        return None
    widths = row_major(layout.shape).strides
    left = list(range(len(layout.shape)))
    shape: list[Size] = []
    strides: list[Size] = []
    reach: Size = 1
    while left:
        found = next((d for d in left if layout.strides[d] == reach), None)
        if found is None:
            return None
        left.remove(found)
        shape.append(layout.shape[found])
        strides.append(widths[found])
        reach = multiply(reach, layout.shape[found])
    return compose_views((), (Layout(tuple(reversed(shape)), tuple(reversed(strides))),))
