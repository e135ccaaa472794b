"""Short reductions, of a few elements each, are maps that read all of them.

Such a map shares a nest with what reads it, and with others like it. A reduction of columns is
finished only after its loop, and keeps a row of accumulators that each of its few rows loads and
stores.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product as positions
from math import prod

from tcw.compiler.fusion.leaves import leaves, reads, uses
from tcw.compiler.fusion.rows import elements
from tcw.compiler.fusion.weights import LANES, Weights, work
from tcw.compiler.loops.expressions import Expression, Load, Op, convert, rewrite, walk
from tcw.compiler.loops.graph import Call, Compute, Graph, Input, Map, Node, Reduce
from tcw.compiler.loops.layouts import Layout, Shape, compose_views, row_major, strides_over
from tcw.compiler.loops.sizes import Size, add, multiply

MOST = 8
"""Maximum number of elements that are combined."""
MOST_ADJACENT = 7
"""The same for adjacent elements, which have to be picked out of vectors."""
WORK = 64
"""Maximum number of instructions for all elements together."""
OPERATIONS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def without_short_reductions(graph: Graph, weights: Weights) -> list[Node]:
    """The graph's nodes, with short reductions of what lies in memory as maps.

    A reduction stays one if another node goes through all that it reads, or through more than its
    results: both then share a loop over the elements, which reads each once.
    """
    memory = {node.name for node in graph.nodes if isinstance(node, Input)}
    for node in graph.nodes:
        if isinstance(node, Call):
            memory |= {result.name for result in node.results if result}
    maps: dict[str, Map] = {}
    sources: dict[str, set[str]] = {}
    for node in graph.nodes:
        if isinstance(node, Reduce) and {leaf.value for leaf in reads(node)} <= memory:
            made = _unrolled(node, weights)
            if made is not None:
                maps[node.name] = made
                sources[node.name] = {leaf.value for leaf in reads(node)}
    if not maps:
        return graph.nodes
    readers: dict[str, list[Compute]] = {}
    for reader, leaf in uses(graph.nodes):
        readers.setdefault(leaf.value, []).append(reader)

    def shares(name: str) -> bool:
        others = [node for value in (name, *sources[name]) for node in readers.get(value, ())]
        return any(o.name not in maps and _longer(o, maps[name], weights) for o in others)

    while shared := [name for name in maps if shares(name)]:
        for name in shared:
            del maps[name]
    return [maps.get(node.name, node) if isinstance(node, Reduce) else node for node in graph.nodes]


def _longer(node: Compute, than: Map, weights: Weights) -> bool:
    """Whether a node goes through more elements than a map."""
    return weights.number(elements(node.domain)) > weights.number(elements(than.domain))


def _unrolled(node: Reduce, weights: Weights) -> Map | None:
    """A reduction as a map; None if it is not short."""
    operation = OPERATIONS.get(node.op)
    if operation is None or node.expression.dtype == "bool":
        return None
    away = [d for d, reduced in enumerate(node.reduced) if reduced]
    sizes = [size for d in away if isinstance(size := node.domain[d], int)]
    count = prod(sizes)
    most = MOST_ADJACENT if node.reduced[-1] else MOST
    if len(sizes) < len(away) or not 1 < count <= most:
        return None
    if count * (work(node.expression) + 2) > WORK or weights.elements(node) < LANES:
        return None
    if not all(isinstance(leaf, Load) for leaf in leaves(node)):
        return None
    kept = [d for d, reduced in enumerate(node.reduced) if not reduced]
    strides = row_major(node.domain).strides
    found: Expression | None = None
    for places in positions(*map(range, sizes)):
        offset: Size = 0
        for digit, place in zip(away, places, strict=True):
            offset = add(offset, multiply(strides[digit], place))
        here = Layout(node.kept, tuple(strides[d] for d in kept), offset)
        element = _at(node.expression, here)
        if element is None:
            return None
        found = element if found is None else Op(operation, (found, element), element.dtype)
    assert found is not None
    if node.reduced[-1] and not _share_lanes(found, node.kept, weights):
        return None
    return Map(node.name, node.dtype, node.kept, convert(found, node.dtype), node.origins)


def _share_lanes(element: Expression, kept: Shape, weights: Weights) -> bool:
    """Whether results that a vector holds read elements near each other: no operand that repeats
    sooner, such as a weight for each of a few rows, is between them."""
    layouts = [part.view[0] for part in walk(element) if isinstance(part, Load) and part.view]
    strides = [strides_over(layout, kept) for layout in layouts]
    together: Size = kept[-1] if kept else 1
    for d in range(len(kept) - 2, -1, -1):
        if any(
            stride is None or stride[d] != multiply(stride[d + 1], kept[d + 1])
            for stride in strides
        ):
            break
        together = multiply(together, kept[d])
    return weights.number(together) >= LANES


def _at(expression: Expression, here: Layout) -> Expression | None:
    """The expression at part of its domain; None if one of its views would be a chain."""
    plain = True

    def leaf(part: Expression) -> Expression:
        nonlocal plain
        if not isinstance(part, Load):
            return part
        view = compose_views(part.view, (here,))
        plain = plain and len(view) <= 1
        return replace(part, view=view)

    found = rewrite(expression, leaf)
    return found if plain else None
