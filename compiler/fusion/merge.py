"""Whether all rules allow two groups to merge, and the merged group."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcw.compiler.fusion.dependencies import Dependencies
from tcw.compiler.fusion.edges import Edge, Edges, edges_of
from tcw.compiler.fusion.groups import Group, Space, space_of
from tcw.compiler.fusion.leaves import leaves
from tcw.compiler.fusion.reachability import Reachability
from tcw.compiler.fusion.rows import common, elements, mask_of
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.fusion.rules.domain import common_space, readable
from tcw.compiler.fusion.rules.order_in_loop import (
    few_pointers,
    no_barrier,
    no_cycle,
    scans_fill_rows,
    scatters_run_alone,
)
from tcw.compiler.fusion.rules.rows_and_riders import (
    riders_are_plain,
    riders_save_kernels,
    rows_are_plain,
    runs_are_whole,
)
from tcw.compiler.fusion.rules.tiles import common_digits, tiles_have_two_axes
from tcw.compiler.fusion.weights import Weights
from tcw.compiler.loops.graph import Call, Compute, Graph, Reduce, Scan, Store
from tcw.compiler.loops.layouts import Shape, normalize


@dataclass(slots=True)
class Merge:
    """A legal merge of two groups."""

    space: Space
    digits: Shape
    against: Refusal | None = None
    """Why the merge does not pay off, or None."""


@dataclass(slots=True)
class Grouping:
    """The groups of one graph during merging."""

    graph: Graph
    order: Dependencies
    weights: Weights
    edges: Edges
    reach: Reachability
    groups: dict[int, Group]
    home: list[int]
    """Place of a node -> id of its group; -1 for a call."""
    digits: dict[int, Shape]
    fixed: set[str]
    """Values that are in memory regardless of fusion."""
    merges: int = 0
    names: dict[str, list[str]] = field(default_factory=dict)

    def legal(self, one: Group, two: Group) -> Merge | Refusal:
        """The merged group, or the first rule that forbids it."""
        edges = self.between(one, two)
        space = common_space(one, two, edges, self.weights, self.edges)
        if isinstance(space, Refusal):
            return space
        refusal = no_cycle(one, two, self.reach, self.order.nodes)
        if refusal is not None:
            return refusal
        for edge in edges:
            refusal = readable(edge, space)
            if refusal is not None:
                return refusal
        against: list[Refusal] = []
        members = [*one.members, *two.members]
        reduces = any(
            isinstance(node, Scan)
            or (isinstance(node, Reduce) and mask_of(node.domain, node.reduced) == space.mask)
            for node in members
        )
        for refusal in (
            rows_are_plain(space, reduces, self.weights),
            runs_are_whole(space, members, self.weights),
            riders_are_plain(space, members, self.weights),
            riders_save_kernels(space, members, self.order.place, self.edges, self.weights),
            scans_fill_rows(space, members),
            scatters_run_alone(space, members),
            no_barrier(one, two, space, self.order),
            few_pointers(one, two),
        ):
            if refusal is not None:
                if not refusal.legal:
                    return refusal
                against.append(refusal)
        digits = common_digits(one, two, space, self.digits)
        if isinstance(digits, Refusal):
            return digits
        both = ((group, self.digits[group.id]) for group in (one, two))
        refusal = tiles_have_two_axes(both, digits, space, self.weights)
        if refusal is not None:
            against.append(refusal)
        return Merge(space, digits, against[0] if against else None)

    def between(self, one: Group, two: Group) -> list[Edge]:
        """The edges between two groups, in either direction."""
        edges: list[Edge] = []
        for reader, producer in ((one, two), (two, one)):
            if not self.reach.reaches(producer.id, reader.id):
                continue
            for place in reader.places:
                for edge in self.edges.of_reader[place]:
                    if self.home[edge.producer_place] == producer.id:
                        edge.reader_group, edge.producer_group = reader.id, producer.id
                        edges.append(edge)
        return edges

    def merge(self, one: Group, two: Group, merge: Merge) -> Group:
        """Merge `two` into `one`."""
        self.reach.merge(one.id, two.id)
        self.merges += 1
        for place in two.places:
            self.home[place] = one.id
        one.places = sorted((*one.places, *two.places))
        nodes = self.order.nodes
        one.members = [u for p in one.places if not isinstance(u := nodes[p], Call)]
        one.space = merge.space
        one.names.extend(two.names)
        inside = {node.name for node in one.members} - self.fixed
        one.buffers = (one.buffers | two.buffers) - inside
        one.changed = self.merges
        self.digits[one.id] = merge.digits
        del self.groups[two.id]
        return one


def grouping(
    graph: Graph,
    order: Dependencies,
    weights: Weights,
    names: dict[str, list[str]],
    fixed: set[str],
) -> Grouping:
    """Initially each compute node is its own group. `fixed` values are in memory in any case."""
    edges = edges_of(graph, order)
    groups: dict[int, Group] = {}
    digits: dict[int, Shape] = {}
    for place, node in enumerate(order.nodes):
        if isinstance(node, Call):
            continue
        read = [leaf.value for leaf in edges.leaves[place]]
        written = [node.buffer if isinstance(node, Store) else node.name]
        held = [node.name, *names.get(node.name, ())]
        groups[place] = Group(
            place, [place], [node], space_of(node), held, frozenset((*read, *written))
        )
        digits[place] = digits_of(node)
    home = [place if place in groups else -1 for place in range(len(order.nodes))]
    reach = Reachability([list(before) for before in order.before])
    return Grouping(graph, order, weights, edges, reach, groups, home, digits, fixed)


def digits_of(node: Compute) -> Shape:
    """The digits that a node's accesses need, leaving out accesses that do not fit."""
    whole = elements(node.domain)
    digits: Shape = (whole,)
    if isinstance(node, Reduce):
        digits = tuple(size for size, _ in mask_of(node.domain, node.reduced)) or digits
    views = [leaf.view for leaf in leaves(node)]
    if isinstance(node, Store):
        views.append(node.view)
    for view in dict.fromkeys(views):
        if view and (shape := normalize(view[-1]).shape):
            digits = common(digits, shape) or digits
    return digits
