"""An FX graph as a list: user line, operation, name, shape. Views and inputs are folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Graph, Node
from tcw.viewers.kit.cells import cut, pad
from tcw.viewers.kit.spans import Line, Span, text
from tcw.viewers.labels import is_view, line_text, short_target
from tcw.viewers.panes.profile_source import node_times
from tcw.viewers.panes.rows import Content, Row, Rows, empty, fold_row
from tcw.viewers.panes.view import View, variant_of
from tcw.viewers.words import plural, seconds_text, shape_text, tensor_text

BY_MODULE = 120
"""From this many operations on, a graph opens as a list of its modules."""


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """One row: a node, or a fold over several."""

    nodes: tuple[int, ...]
    fold: str = ""
    """Key of the fold, "" for a node."""
    words: str = ""
    open: bool = False


def content(view: View, width: int) -> Content:
    graph = view.graph()
    if graph is None:
        status = view.piece.status if view.piece else ""
        why = f"{view.compile_id} captured no graph" if view.compile_id else "no graph yet"
        return Content("graph", view.compile_id, rows=empty(width, why, status))
    entries = entries_of(graph, view.unfolded)
    name_column = _column(graph, width)
    times = node_times(view, graph.id)

    def make(index: int) -> Row:
        entry = entries[index]
        if entry.fold:
            return fold_row(entry.fold, entry.words, entry.open, indent=3)
        node = graph.nodes[entry.nodes[0]]
        return node_row(graph, node, width, name_column, times.get(node.name))

    row_refs = [_lit_ref(view, graph, entry) for entry in entries]
    rows = Rows(len(entries), make, row_refs)
    first = next((ref for entry, ref in zip(entries, row_refs, strict=True) if not entry.fold), "")
    subject = f"{graph.compile_id} {variant_of(graph)}"
    return Content("graph", subject, _lit(view, graph), rows, first)


def _lit_ref(view: View, graph: Graph, entry: GraphEntry) -> str:
    """The ref of an entry's row; a closed fold lights up with the first counterpart in it."""
    names = (refs.node(graph.id, graph.nodes[index].name) for index in entry.nodes)
    if not entry.fold:
        return next(names)
    return "" if entry.open else next((ref for ref in names if ref in view.lit), "")


def _lit(view: View, graph: Graph) -> Line:
    found = [
        view.lit[ref]
        for ref in (refs.node(graph.id, node.name) for node in graph.nodes)
        if ref in view.lit
    ]
    if not found:
        return ((plural(graph.ops, "op"), "dim"),)
    exact = found.count("exact")
    inferred = len(found) - exact
    words = " + ".join([str(exact)] * bool(exact) + [f"{inferred}≈"] * bool(inferred))
    return ((words, "accent"), (" lit", "dim"))


def entries_of(graph: Graph, unfolded: set[str]) -> list[GraphEntry]:
    """The rows of a graph, from what the reader has unfolded."""
    entries: list[GraphEntry] = []
    inputs = tuple(i for i, node in enumerate(graph.nodes) if not node.op.startswith("call"))
    computing = [i for i, node in enumerate(graph.nodes) if node.op.startswith("call")]
    holders = tuple(i for i in inputs if graph.nodes[i].op in ("placeholder", "get_attr"))
    if holders:
        entries.extend(
            _folded(f"{graph.id}:inputs", plural(len(holders), "input"), holders, unfolded)
        )
    if len(computing) > BY_MODULE:
        for module, nodes in _by_module(graph, computing):
            if len(nodes) == 1:
                entries.append(GraphEntry(nodes))
                continue
            key = f"{graph.id}:module:{nodes[0]}"
            words = f"{module or 'the model itself'}  {plural(len(nodes), 'op')}"
            entries.append(GraphEntry(nodes, key, words, key in unfolded))
            if key in unfolded:
                entries.extend(_nodes(graph, nodes, unfolded))
    else:
        entries.extend(_nodes(graph, computing, unfolded))
    return entries


def _folded(key: str, words: str, nodes: tuple[int, ...], unfolded: set[str]) -> list[GraphEntry]:
    opened = key in unfolded
    head = GraphEntry(nodes, key, words, opened)
    return [head, *(GraphEntry((node,)) for node in nodes)] if opened else [head]


def _nodes(graph: Graph, nodes: Sequence[int], unfolded: set[str]) -> list[GraphEntry]:
    """Runs of views are folded: they move no data. A lone view stays."""
    entries: list[GraphEntry] = []
    run: list[int] = []

    def close() -> None:
        if len(run) == 1:
            entries.append(GraphEntry((run[0],)))
        elif run:
            key = f"{graph.id}:views:{run[0]}"
            names = [short_target(graph.nodes[i].target) for i in run]
            words = f"{plural(len(run), 'view')}  {' '.join(dict.fromkeys(names))}"
            entries.extend(_folded(key, words, tuple(run), unfolded))
        run.clear()

    captured = graph.kind == "captured"
    for index in nodes:
        if not captured and is_view(graph.nodes[index]):
            run.append(index)
        else:
            close()
            entries.append(GraphEntry((index,)))
    close()
    return entries


def _by_module(graph: Graph, nodes: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
    """Runs of nodes of one module, cut to the depth that a screen shows."""
    runs = groupby(nodes, lambda index: _owner(graph.nodes[index].module))
    return [(module, tuple(run)) for module, run in runs]


def _owner(module: str) -> str:
    """`layers.0.attention.q` -> `layers.0`: the numbered block; else the outermost two modules."""
    parts = module.split(".")
    for index, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: index + 1])
    return ".".join(parts[:2])


def _column(graph: Graph, width: int) -> int:
    """Cells for the operation's column."""
    longest = max(
        (len(short_target(n.target)) for n in graph.nodes if n.op.startswith("call")), default=8
    )
    return min(longest + 1, max(8, width // 2))


def node_row(graph: Graph, node: Node, width: int, column: int, seconds: float | None) -> Row:
    """`≈18 amax        amax_default    4×8×128×1`; `seconds`: of the kernel that ends here."""
    ref = refs.node(graph.id, node.name)
    shape = _shape(node)
    words = short_target(node.target) if node.op.startswith("call") else node.op
    time = f"{seconds_text(seconds)}  " if seconds is not None else ""
    room = width - 7 - column - len(shape) - len(time) - 2
    name = node.name if node.name != words else ""
    quiet = is_view(node) or not node.op.startswith("call")
    spans: list[Span] = [
        text(pad(cut(words, column - 1), column), "dim" if quiet else "text"),
        text(name if len(name) <= room else "", "faint"),
    ]
    gutter: Span = (line_text(node.location, node.inferred), "dim" if node.inferred else "faint")
    return Row(
        gutter=(gutter,),
        body=tuple(spans),
        right=(*(((time, "accent"),) if time else ()), text(shape, "dim"), (" ", "text")),
        ref=ref,
        key=ref,
        copies=f"{node.name} = {node.target}({node.args})",
    )


def _shape(node: Node) -> str:
    if node.value is not None:
        dtype = node.value.dtype
        tail = "" if dtype == "float32" else f" {tensor_text(node.value).split(' ')[0]}"
        return shape_text(node.value.shape) + tail
    if node.values:
        return plural(len(node.values), "value")
    return ""
