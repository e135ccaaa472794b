"""A recorded graph as blocks to draw: fusion groups, single operations, or folded modules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from tcw.compiler.trace.records import FusionGroups, Graph, Kernel, Node
from tcw.viewers.drawing.diagram import (
    MOST,
    Block,
    BlockKind,
    Diagram,
    DrawnFold,
    FoldOf,
    drawn_folds,
    input_name,
    is_weight,
    runs_of,
)
from tcw.viewers.drawing.layers import Edge, targets_of
from tcw.viewers.labels import is_view, short_label, short_target
from tcw.viewers.panes.view import View
from tcw.viewers.words import plural, shape_text, tensor_text

ALL = 20_000
"""Maximum number of blocks drawn at once if the reader asks for all."""
SCALES = ("groups", "ops", "shapes")


@dataclass
class BlockGroup:
    """A fusion group of the lowered graph."""

    name: str
    nodes: tuple[str, ...]
    label: str
    kernel: Kernel | None
    alone: bool
    """Its kernel has no other group."""


def groups_of(view: View, graph: Graph) -> list[BlockGroup]:
    """The groups that fusion ended with, in the order of the schedule."""
    kernels = [
        k for k in view.recording.kernels_of.get(graph.compile_id, []) if k.graph == graph.id
    ]
    of_operation: dict[str, Kernel] = {}
    for kernel in sorted(kernels, key=lambda kernel: kernel.predicted != view.predicted):
        for operation in kernel.nodes:
            of_operation.setdefault(operation, kernel)
    last = [record for record in view.recording.all(FusionGroups) if record.graph == graph.id]
    if last:
        found = [(group.name, group.nodes, group.label) for group in last[-1].groups]
    else:
        found = [(kernel.id, kernel.nodes, kernel.label) for kernel in kernels if kernel.nodes]
    held: Counter[str] = Counter()
    for _, nodes, _ in found:
        held.update({of_operation[n].id for n in nodes if n in of_operation})
    groups = []
    for name, nodes, label in found:
        chosen = next((of_operation[n] for n in nodes if n in of_operation), None)
        groups.append(
            BlockGroup(name, nodes, label, chosen, chosen is None or held[chosen.id] == 1)
        )
    return groups


def group_of_nodes(view: View, graph: Graph, groups: list[BlockGroup]) -> dict[str, BlockGroup]:
    """Name of a node -> its group. A node that several groups compute belongs to the first; a view
    that several read through belongs to none."""
    operations = view.recording.operations
    nodes = view.recording.nodes(graph.id)
    found: dict[str, BlockGroup] = {}
    shared: set[str] = set()
    for group in groups:
        for operation in group.nodes:
            record = operations.get((graph.id, operation))
            for origin in record.origins if record else ():
                before = found.setdefault(origin, group)
                if before is not group and origin in nodes and is_view(nodes[origin]):
                    shared.add(origin)
    return {name: group for name, group in found.items() if name not in shared}


@dataclass
class _Piece:
    """A block under construction."""

    key: str
    nodes: list[int] = field(default_factory=list)
    group: BlockGroup | None = None
    module: str = ""
    fold: DrawnFold | None = None
    apart: bool = False
    """Whether it is one node of a group, drawn by itself."""


def all_key(graph: Graph) -> DrawnFold:
    """In a view's `unfolded`: the graph is not folded by module."""
    return DrawnFold(graph.id, "all")


def diagram(view: View) -> Diagram | None:
    """The current graph, as the view wants it drawn; None if there is no graph."""
    graph = view.graph()
    if graph is None:
        return None
    folds = frozenset(key for key in drawn_folds(view.unfolded) if key.graph == graph.id)
    made = len(view.recording.kernels_of.get(graph.compile_id, ()))
    made += len(view.recording.all(FusionGroups))
    key = (id(graph), view.scale, view.weights, view.predicted, folds, made)
    known = _kept.pop(key, None) or _Maker(view, graph, folds).diagram()
    _kept[key] = known
    while len(_kept) > KEPT:
        del _kept[next(iter(_kept))]
    return known


KEPT = 12
_kept: dict[tuple[object, ...], Diagram] = {}
"""The last diagrams, which keep their graphs alive: a growing trace, or a reader who moves back and
forth in time, draws the same graph repeatedly."""


class _Maker:
    def __init__(self, view: View, graph: Graph, unfolded: frozenset[DrawnFold]) -> None:
        self.view = view
        self.graph = graph
        self.unfolded = unfolded
        self.scale = view.scale
        self.groups = groups_of(view, graph)
        self.group_of = group_of_nodes(view, graph, self.groups)
        self.hues: dict[str, int] = {}
        self.named: dict[int, str] = {}
        """Hue -> its meaning."""
        nodes = graph.nodes
        self.weight = [is_weight(view, graph, node) for node in nodes]
        self.hidden = sum(self.weight)
        self.place = {node.name: index for index, node in enumerate(nodes)}
        self.dissolved = [
            node.op == "output" or (weight and not view.weights)
            for node, weight in zip(nodes, self.weight, strict=True)
        ]

    def diagram(self) -> Diagram:
        pieces = self._pieces()
        for attempt in range(3):
            owner = {index: number for number, p in enumerate(pieces) for index in p.nodes}
            edges = self._edges(owner)
            order = _topological(len(pieces), edges, [min(p.nodes) for p in pieces])
            if order is not None:
                break
            pieces = self._split(pieces, single=attempt > 0)
        assert order is not None
        number = {old: new for new, old in enumerate(order)}
        blocks = tuple(self._block(pieces[old]) for old in order)
        found = sorted((number[a], number[b]) for a, b in edges)
        groups = len(self.groups) or sum(b.kind == "module" for b in blocks)
        legend = self._legend(blocks)
        hidden = 0 if self.view.weights else self.hidden
        return Diagram(self.graph, self.scale, blocks, tuple(found), hidden, groups, legend)

    def _pieces(self) -> list[_Piece]:
        """The nodes, each in one piece; those drawn only as lines are in none."""
        drawn = [i for i in range(len(self.graph.nodes)) if not self.dissolved[i]]
        most = ALL if all_key(self.graph) in self.unfolded else MOST
        if len(drawn) <= most or self.group_of:
            pieces = self._of(drawn, None)
            if len(pieces) <= most:
                return pieces
        return self._folded(drawn, 0, None)

    def _folded(self, drawn: Sequence[int], depth: int, inside: DrawnFold | None) -> list[_Piece]:
        """By module; an opened module shows its groups, or the modules in it."""
        inputs = [i for i in drawn if not self.graph.nodes[i].op.startswith("call")]
        rest = [i for i in drawn if self.graph.nodes[i].op.startswith("call")]
        pieces = self._of(inputs, inside) if len(inputs) <= MOST else []
        if len(inputs) > MOST:
            fold = self._fold("inputs", inputs[0])
            pieces.append(_Piece(fold, inputs, None, "inputs", fold))
        for module, run in runs_of(self.graph, rest, depth):
            fold = self._fold("module", run[0], f":{depth}")
            if len(run) == 1:
                pieces.extend(self._of(run, inside))
            elif fold not in self.unfolded:
                pieces.append(_Piece(fold, run, None, module, fold))
            else:
                opened = self._of(run, fold)
                if len(opened) > MOST:
                    opened = self._folded(run, depth + 1, fold)
                pieces.extend(opened)
        return pieces

    def _fold(self, of: FoldOf, first: int, rest: str = "") -> DrawnFold:
        return DrawnFold(self.graph.id, of, f"{self.graph.nodes[first].name}{rest}")

    def _of(self, drawn: Sequence[int], inside: DrawnFold | None) -> list[_Piece]:
        """The fusion groups of these nodes, and the nodes that are in none."""
        pieces: list[_Piece] = []
        by_group: dict[str, _Piece] = {}
        for index in drawn:
            node = self.graph.nodes[index]
            group = self.group_of.get(node.name)
            if group is None:
                if self._passes(node):
                    continue
                pieces.append(_Piece(f"{self.graph.id}:{node.name}", [index], fold=inside))
                continue
            fold = DrawnFold(self.graph.id, "group", group.name)
            if self.scale or fold in self.unfolded:
                key, around = f"{self.graph.id}:{node.name}", inside if self.scale else fold
                pieces.append(_Piece(key, [index], group, fold=around, apart=True))
                continue
            piece = by_group.get(group.name)
            if piece is None:
                key = f"{inside or ''}{fold}"
                piece = by_group[group.name] = _Piece(key, [], group, fold=fold)
                pieces.append(piece)
            piece.nodes.append(index)
        return pieces

    def _passes(self, node: Node) -> bool:
        """Whether a node is drawn as a line only: a view, if groups are drawn."""
        return self.scale == 0 and self.graph.kind != "captured" and is_view(node)

    def _edges(self, owner: dict[int, int]) -> set[Edge]:
        reaches: list[tuple[int, ...]] = []
        edges: set[Edge] = set()
        for index, node in enumerate(self.graph.nodes):
            places = (self.place.get(name) for name in node.inputs)
            found = dict.fromkeys(
                o for p in places if p is not None and p < index for o in reaches[p]
            )
            piece = owner.get(index)
            if piece is None:
                reaches.append(() if self.dissolved[index] else tuple(found))
                continue
            edges.update((source, piece) for source in found if source != piece)
            reaches.append((piece,))
        return edges

    def _split(self, pieces: list[_Piece], single: bool) -> list[_Piece]:
        """Pieces that read each other cannot be drawn: each is split into runs of nodes that are
        adjacent in the graph, else into its nodes."""
        owner = {index: number for number, p in enumerate(pieces) for index in p.nodes}
        found: list[_Piece] = []
        last = -1
        for index in sorted(owner):
            number = owner[index]
            piece = pieces[number]
            if number != last or single:
                key = piece.key if len(piece.nodes) == 1 else f"{piece.key}:{index}"
                found.append(replace(piece, key=key, nodes=[]))
            found[-1].nodes.append(index)
            last = number
        return found

    # Words

    def _hue(self, name: str, words: str) -> int:
        hue = self.hues.setdefault(name, len(self.hues))
        self.named.setdefault(hue, words)
        return hue

    def _legend(self, blocks: Sequence[Block]) -> tuple[tuple[int, str, int], ...]:
        counts = Counter[int]()
        for block in blocks:
            counts[block.hue] += len(block.nodes) if block.hue >= 0 else block.kind == "call"
        found = [(hue, words, counts[hue]) for hue, words in self.named.items() if counts[hue]]
        kernels = self.view.recording.kernels
        called = {kernels[block.kernel].language for block in blocks if block.kernel in kernels}
        words = "calls" if "rng" in called else "library calls"
        return (*found, *([(-1, words, counts[-1])] if counts[-1] else []))

    def _block(self, piece: _Piece) -> Block:
        nodes = [self.graph.nodes[index] for index in piece.nodes]
        indices = tuple(piece.nodes)
        if piece.module or (len(nodes) > 1 and piece.group is None):
            pattern = re.sub(r"\d+", "N", piece.module)
            lines = (plural(len(nodes), "op"), *_operations(nodes, 2))
            hue = self._hue(pattern, pattern)
            return Block(piece.key, piece.module, lines, indices, "module", hue, fold=piece.fold)
        if piece.group is None:
            return self._single(piece, nodes[0], indices)
        group, kernel = piece.group, piece.group.kernel
        name = kernel.id if kernel else ""
        call = kernel is not None and not kernel.generated
        whole = replace(group, alone=True)
        hue = -1 if call else self._hue(name or group.name, self._group_words(whole))
        if piece.apart:
            block = self._single(piece, nodes[0], indices)
            kind: BlockKind = "call" if call and not is_view(nodes[0]) else "op"
            return Block(
                block.key,
                block.title,
                block.lines,
                indices,
                kind,
                hue,
                name,
                piece.fold,
                group.nodes,
            )
        if call:
            return self._call(piece, nodes, indices, name)
        title = self._group_words(group)
        fold = piece.fold if len(nodes) > 1 else None
        return Block(
            piece.key, title, _operations(nodes, 3), indices, "group", hue, name, fold, group.nodes
        )

    def _group_words(self, group: BlockGroup) -> str:
        """`k4 softmax`. If too many operations are listed: those of the user's program."""
        kernel, facts = group.kernel, self.view.derived
        if kernel is not None and group.alone:
            return facts.called.title(kernel)
        label = short_label(group.label)
        if label.endswith("…"):
            known = facts.recording.operations
            records = (known.get((self.graph.id, operation)) for operation in group.nodes)
            names = [origin for record in records if record for origin in record.origins]
            label = facts.called.purpose(self.graph, names) or label
        return f"{kernel.id if kernel else ''} {label}".strip()

    def _call(
        self, piece: _Piece, nodes: list[Node], indices: tuple[int, ...], kernel: str
    ) -> Block:
        main = ([n for n in nodes if not is_view(n)] or nodes)[-1]
        words = short_label(short_target(main.target)) or short_target(main.target)
        named = f"{words} {main.module.rpartition('.')[2]}".strip()
        called = self.view.recording.kernels.get(kernel)
        if called is not None and not called.generated:
            named = self.view.derived.called.name(called)
        known = self.view.recording.nodes(self.graph.id)
        shapes = [known[n].value for n in main.inputs if n in known]
        sizes = [shape_text(value.shape) for value in shapes if value and len(value.shape) > 1]
        lines = (" · ".join(sizes[:3]),) if sizes else ()
        nodes_of = piece.group.nodes if piece.group else ()
        return Block(piece.key, named, lines, indices, "call", -1, kernel, None, nodes_of)

    def _single(self, piece: _Piece, node: Node, indices: tuple[int, ...]) -> Block:
        index = indices[0]
        value = tensor_text(node.value) if node.value else ""
        if node.op in ("placeholder", "get_attr"):
            name = input_name(self.view, self.graph, node)
            shape = shape_text(node.value.shape) if node.value else ""
            kind: BlockKind = "weight" if self.weight[index] else "input"
            title = f"{name}  {shape}".strip()
            return Block(piece.key, title, (), indices, kind)
        words = short_target(node.target)
        title = words if node.name.rstrip("_0123456789") == words else f"{words} {node.name}"
        lines: tuple[str, ...] = ()
        if self.scale == 2:
            several = plural(len(node.values), "value") if node.values else ""
            lines = (value or several or "no shape recorded",)
        kind = "op"
        return Block(piece.key, title, lines, indices, kind, fold=piece.fold)


def _operations(nodes: Iterable[Node], most: int) -> tuple[str, ...]:
    """Operations in the order in which they run, wrapped; views only where nothing else is."""
    nodes = list(nodes)
    words = [short_target(node.target) for node in nodes if not is_view(node)]
    words = words or [short_target(node.target) for node in nodes]
    if len(words) > 40:
        common = Counter(words).most_common(6)
        words = [f"{count}×{word}" for word, count in common]
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) < 26:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1] + " …"]
    return tuple(lines)


def _topological(count: int, edges: Collection[Edge], first: Sequence[int]) -> list[int] | None:
    """An order in which every edge leads forward, in the graph's own order if possible; None if the
    edges form a cycle."""
    follows = targets_of(count, edges)
    waits = Counter(reader for _, reader in edges)
    ready = [(first[n], n) for n in range(count) if not waits[n]]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, node = heappop(ready)
        order.append(node)
        for reader in follows[node]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, (first[reader], reader))
    return order if len(order) == count else None
