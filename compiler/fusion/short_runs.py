"""Short runs: groups of a few elements side by side, of which a vector would hold only some.

The channels of a channels-last image, normalised in groups of 4, are the example: the groups' sums
have rows of 4 elements that lie far apart, and their means are read by 4 lanes each. A reduction
over such runs first sums each element of a run by itself, and then the runs; a value that is read
once for each run is spread over its elements first. Both make lanes of whole rows of runs.
"""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.fusion.leaves import is_compute, map_leaves, reads, unused_name
from tcw.compiler.fusion.rows import elements, mask_of
from tcw.compiler.fusion.weights import LANES, Weights
from tcw.compiler.loops.expressions import Expression, Load
from tcw.compiler.loops.graph import Call, Compute, Graph, Map, Node, Reduce, Store
from tcw.compiler.loops.layouts import Layout, View, normalize, row_major, view_strides
from tcw.compiler.loops.sizes import Size, product

OFTEN = 8
"""Minimum number of elements per element of an intermediate value."""
KINDS = frozenset({"sum", "prod", "max", "min", "any", "all"})


def without_short_runs(graph: Graph, weights: Weights, names: dict[str, list[str]]) -> list[Node]:
    """The graph's nodes, with reductions over short runs split, and values that are read once for
    each run spread. `names` records for each new node the nodes that it computes part of."""
    if not weights.machine.runs:
        return graph.nodes
    taken = {node.name for node in graph.nodes}
    written = _written(graph)
    spread: dict[Load, Load] = {}
    nodes: list[Node] = []

    def add(part: Compute, whole: Node) -> None:
        taken.add(part.name)
        names[part.name] = [whole.name, *names.get(whole.name, ())]
        nodes.append(part)

    for node in graph.nodes:
        if not is_compute(node):
            nodes.append(node)
            continue
        for leaf in reads(node):
            if isinstance(leaf, Load) and leaf not in spread and leaf.value not in written:
                found = _spread(node, leaf, unused_name(f"{leaf.value}_spread", taken), weights)
                if found is not None:
                    made, spread[leaf] = found
                    add(made, node)
        node = _with_spread(node, spread)
        if isinstance(node, Reduce) and _is_split(node, weights):
            first, node = _halves(node, unused_name(f"{node.name}_runs", taken))
            add(first, node)
        nodes.append(node)
    return nodes


def is_spread(node: Compute) -> bool:
    """Whether the node is a map that spreads a value over short runs."""
    leaf = node.expression
    if not isinstance(node, Map) or not isinstance(leaf, Load) or len(leaf.view) != 1:
        return False
    layout = leaf.view[0]
    return len(layout.shape) > 1 and not layout.strides[-1] and _is_run(*layout.shape[:-3:-1])


def _with_spread(node: Compute, spread: dict[Load, Load]) -> Compute:
    def leaf(part: Expression) -> Expression:
        return spread.get(part, part) if isinstance(part, Load) else part

    return map_leaves(node, leaf) if any(leaf in spread for leaf in reads(node)) else node


def _written(graph: Graph) -> set[str]:
    """Memory that the graph writes more than once."""
    found: set[str] = set()
    for node in graph.nodes:
        if isinstance(node, Store):
            found.add(node.buffer)
        elif isinstance(node, Call):
            found.update((*node.mutates, *node.aliases))
    return found


def _is_run(run: Size, runs: Size) -> bool:
    """Whether a row of runs fills a vector, and a run does not."""
    return (
        isinstance(run, int) and isinstance(runs, int) and 1 < run < LANES and run * runs >= LANES
    )


def _is_split(node: Reduce, weights: Weights) -> bool:
    """Whether a reduction is over rows of runs: `… × 1024 reduced × 8 kept × 4 reduced`."""
    mask = mask_of(node.domain, node.reduced)
    if node.op not in KINDS or len(mask) < 3 or not mask[-1][1]:
        return False
    return _is_run(mask[-1][0], mask[-2][0]) and weights.number(mask[-3][0]) >= OFTEN


def _halves(node: Reduce, name: str) -> tuple[Reduce, Reduce]:
    """The reduction over the runs, one result per element of a run, and the reduction of the run
    that remains."""
    inner = len(node.reduced)
    while inner and (node.reduced[inner - 1] or node.domain[inner - 1] == 1):
        inner -= 1
    reduced = tuple(away and place < inner for place, away in enumerate(node.reduced))
    dtype = node.expression.dtype
    first = replace(node, name=name, dtype=dtype, reduced=reduced)
    left = tuple(away for place, away in enumerate(node.reduced) if not reduced[place])
    return first, replace(node, domain=first.kept, reduced=left, expression=Load(name, (), dtype))


def _spread(node: Compute, leaf: Load, name: str, weights: Weights) -> tuple[Map, Load] | None:
    """A map that repeats what a leaf reads once per run for each element of a run, and the leaf
    that reads this map; None if the leaf reads no such value, or nothing else lies along the
    runs."""
    if len(leaf.view) != 1:
        return None
    layout = normalize(leaf.view[0])
    if len(layout.shape) < 3 or layout.strides[-1] != 0 or layout.strides[-2] == 0:
        return None
    if not _is_run(layout.shape[-1], layout.shape[-2]):
        return None
    last = len(layout.shape) - 1
    kept = [d for d, stride in enumerate(layout.strides) if stride != 0 or d == last]
    domain = tuple(layout.shape[d] for d in kept)
    if weights.number(product(layout.shape)) < OFTEN * weights.number(elements(domain)):
        return None
    others = (other.view for other in reads(node) if isinstance(other, Load) and other != leaf)
    if not any(_lies_along(view, layout.shape) for view in others):
        return None
    read = Layout(domain, tuple(layout.strides[d] for d in kept), layout.offset)
    made = Map(name, leaf.dtype, domain, Load(leaf.value, (read,), leaf.dtype), node.origins)
    steps = dict(zip(kept, row_major(domain).strides, strict=True))
    view = Layout(layout.shape, tuple(steps.get(d, 0) for d in range(last + 1)))
    return made, Load(name, (view,), leaf.dtype)


def _lies_along(view: View, digits: tuple[Size, ...]) -> bool:
    """Whether a view reads the runs of a row one after the other."""
    if not view:
        return True
    strides = view_strides(view, digits)
    return strides is not None and strides[-1] == 1 and strides[-2] == digits[-1]
