"""A product that Inductor computes on padded matrices (torch/_inductor/fx_passes/pad_mm.py): each
size is rounded up to suit the GPU's matrix units, at the cost of copying the matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tcw.compiler.trace.records import Advice, Graph, Node
from tcw.viewers.summary.place import place_of
from tcw.viewers.summary.profile.causes.cause import Cause, cause_of
from tcw.viewers.summary.profile.causes.remedies import of_setting
from tcw.viewers.summary.profile.causes.step_words import bare, is_product, named
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.words import bytes_text, domain_text, seconds_text

_SETTING = "torch._inductor.config.shape_padding = False"

Sizes = tuple[int, int, int]
"""Rows of the first matrix, its columns, columns of the second."""


@dataclass(frozen=True)
class Padded:
    """A padded product of a lowered graph."""

    node: Node
    before: Sizes
    after: Sizes
    pads: frozenset[str]
    """Nodes that compute the padded matrices."""


def padding(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    """One cause for all products on a line that were padded alike: what the padding costs, and what
    the products win or lose by it."""
    known = {
        (graph.id, name): padded
        for graph in index.recording.graphs.values()
        for padded in padded_products(graph)
        for name in (padded.node.name, *padded.pads)
    }
    alike: dict[object, list[RegionRow]] = {}
    products: dict[object, dict[tuple[str, str], Padded]] = {}
    for row in rows if known else ():
        found = {
            (kernel.graph, padded.node.name): padded
            for step in row.steps
            if (kernel := index.kernel_of(step)) is not None
            for name in kernel.origins
            if (padded := known.get((kernel.graph, name))) is not None
        }
        if found and row.standing != "noise":
            one = next(iter(found.values()))
            key = (one.node.location, one.before, one.after, row.phase)
            alike.setdefault(key, []).append(row)
            products.setdefault(key, {}).update(found)
    for same, together in alike.items():
        yield _cause(index, together, list(products[same].values()))


def padded_products(graph: Graph) -> Iterator[Padded]:
    """Products whose matrices were padded only for them."""
    nodes = {node.name: node for node in graph.nodes}
    for node in graph.nodes:
        if not (node.op.startswith("call") and is_product(node.target) and node.origins):
            continue
        matrices = [nodes[name] for name in _matrices(node) if name in nodes]
        if len(matrices) != 2:
            continue
        pads = [matrix for matrix in matrices if _is_pad_for(matrix, node)]
        after = _sizes(matrices)
        before = _sizes([nodes.get(o.inputs[0], o) if o in pads else o for o in matrices])
        if pads and before is not None and after is not None and before != after:
            yield Padded(node, before, after, frozenset(_made_for(nodes, node)))


def _matrices(node: Node) -> tuple[str, ...]:
    """`a, b` of `mm(a, b)`, of `addmm(bias, a, b)`; `a, a` if it is squared."""
    given = node.inputs[1:] if bare(node.target) in ("addmm", "baddbmm") else node.inputs
    return given * 2 if len(given) == 1 else given


def _is_pad_for(node: Node, product: Node) -> bool:
    """Excludes the user's own pads, which have their own origin."""
    return bare(node.target) == "constant_pad_nd" and node.origins == product.origins


def _made_for(nodes: dict[str, Node], product: Node) -> Iterator[str]:
    """What the same replacement put before a product: pads, and zeros for its bias."""
    waiting, seen = list(product.inputs), set()
    while waiting:
        node = nodes.get(waiting.pop())
        if node is None or node.name in seen or node.origins != product.origins:
            continue
        seen.add(node.name)
        waiting += node.inputs
        yield node.name


def _sizes(matrices: Sequence[Node]) -> Sizes | None:
    shapes = [matrix.value.shape for matrix in matrices if matrix.value is not None]
    if len(shapes) != 2 or any(len(shape) < 2 for shape in shapes):
        return None
    (*_, rows, inner), (*_, columns) = shapes
    sizes = (rows, inner, columns)
    return sizes if all(isinstance(size, int) for size in sizes) else None  # type: ignore[return-value]


def _cause(index: Index, rows: Sequence[RegionRow], products: Sequence[Padded]) -> Cause:
    padded = products[0]
    what = "padded product" if len(products) < 2 else f"{len(products)} padded products"
    before, after = map(domain_text, (padded.before, padded.after))
    alone = [row for row in rows if not row.operations]
    notes = []
    if alone:
        took = seconds_text(sum(row.difference for row in alone))
        size = [row.compiled_work.bytes for row in alone]
        moved = f", {bytes_text(sum(filter(None, size)))} moved" if all(size) else ""
        notes.append(f"padding the matrices takes {took}{moved}; eager does not pad")
    steps = named(step.name for row in rows for step in row.steps)
    notes.append(f"rows × inner × columns, rounded up by Inductor for a GPU: {steps}")
    seconds = sum(row.difference for row in rows)
    return cause_of(
        *rows,
        kind="padding",
        title=f"{what}: {before} computed as {after}",
        place=place_of(index.recording, padded.node.location),
        notes=tuple(notes),
        fixes=(Advice(text="keeps products unpadded", code=_SETTING),) if seconds > 0 else (),
        suggestions=tuple(of_setting(_SETTING, "padding")) if seconds > 0 else (),
    )
