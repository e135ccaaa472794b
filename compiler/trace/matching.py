"""Kernels of two runs that do the same work, matched by what they compute, never by their ids.

A kernel computes scheduler nodes, which are identified by the nodes of the lowered graph that they
come from: those names are the same in every run, while `k4`, `op9` and `buf3` are counters.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from tcw.compiler.trace.records import Kernel, SchedulerNode

T = TypeVar("T", bound=Hashable)

BACKWARD = "/backward"
"""In the id of a backward graph."""
_SUBGRAPH = re.compile(r"(.+?/(?:forward|backward|inference)(?:@\w+)?)/(?!lowered)(.+)")

Work = frozenset[Hashable]
"""What a kernel computes: comparable between runs."""

MatchKind = Literal["same", "changed", "split", "merged", "regrouped", "new", "gone"]


@dataclass(frozen=True)
class Match:
    """The kernels of both runs that do one piece of work."""

    graph: str
    """Without its last stage: `0/0/forward`."""
    before: tuple[Kernel, ...]
    after: tuple[Kernel, ...]
    same: bool = False
    """The same code on both sides."""

    @property
    def only_one_side(self) -> tuple[str, ...]:
        """Origins that only one side computes. If there are any, the two are not the same work, and
        the time of one says nothing about the other."""
        before, after = (
            {origin for kernel in side for origin in kernel.origins}
            for side in (self.before, self.after)
        )
        return tuple(sorted(before ^ after))

    @property
    def kind(self) -> MatchKind:
        before, after = len(self.before), len(self.after)
        if not before or not after:
            return "gone" if before else "new"
        if before == after:
            return "same" if self.same else "changed" if before == 1 else "regrouped"
        if before == 1 or after == 1:
            return "split" if before == 1 else "merged"
        return "regrouped"


def base_graph(graph: str) -> str:
    """`0/0/forward/lowered` -> `0/0/forward`."""
    return graph.removesuffix("/lowered")


def root_graph(graph: str) -> tuple[str, str]:
    """The graph that a subgraph is part of, and the subgraph's name, or "" for a graph that is not
    a subgraph: `0/0/forward/true_graph_0` -> (`0/0/forward`, `true_graph_0`)."""
    base = base_graph(graph)
    found = _SUBGRAPH.match(base)
    return (found[1], found[2]) if found else (base, "")


def is_predicted(graph: str) -> bool:
    """Whether a graph was predicted for an absent GPU: `0/0/forward@sm_90/lowered`."""
    return "@" in graph


Rename = Callable[[str, str], str]
"""(Graph without its last stage, node) -> the node's name in the other run."""


def as_named(graph: str, node: str) -> str:
    """The `Rename` of two runs of the same source."""
    return node


def identities(
    operations: Iterable[SchedulerNode], rename: Rename = as_named
) -> dict[tuple[str, str], Hashable]:
    """(Graph, scheduler node) -> what it computes, for runs of one engine. Scheduler nodes with
    equal origins are distinguished by their order."""
    names: dict[tuple[str, str], Hashable] = {}
    seen: Counter[Hashable] = Counter()
    for node in operations:
        graph = base_graph(node.graph)
        like = (graph, frozenset(rename(graph, origin) for origin in node.origins))
        names[node.graph, node.name] = (like, seen[like])
        seen[like] += 1
    return names


def work_by_origins(
    kernels: Iterable[Kernel], names: Mapping[tuple[str, str], Hashable], rename: Rename = as_named
) -> dict[str, Work]:
    """Kernel id -> what it computes. `names`: of `identities`."""
    found: dict[str, Work] = {}
    for kernel in kernels:
        graph = base_graph(kernel.graph)
        known = [
            names[kernel.graph, node] for node in kernel.nodes if (kernel.graph, node) in names
        ]
        origins: list[Hashable] = [(graph, rename(graph, origin)) for origin in kernel.origins]
        found[kernel.id] = frozenset(known or origins or [(graph, kernel.label)])
    return found


def work_by_lines(kernels: Iterable[Kernel]) -> dict[str, Work]:
    """Kernel id -> the user's lines, for engines whose graphs have different nodes."""
    found: dict[str, Work] = {}
    for kernel in kernels:
        graph = base_graph(kernel.graph)
        places = [*kernel.locations, *(place for line in kernel.lines for place in line.locations)]
        lines: set[Hashable] = {(graph, place.file, place.line) for place in places}
        found[kernel.id] = frozenset(lines or {(graph, kernel.label)})
    return found


def match(
    before: Iterable[Kernel],
    after: Iterable[Kernel],
    work_before: Mapping[str, Work],
    work_after: Mapping[str, Work],
    code_before: Mapping[str, str],
    code_after: Mapping[str, str],
) -> list[Match]:
    """All kernels of both runs, each once, in the order of the run (a kernel that is gone appears
    where it was). `code_…`: kernel id -> its text, without what does not affect equality."""
    first, second = list(before), list(after)
    taken: set[int] = set()
    pairs: list[Match] = []
    waiting: dict[tuple[str, Work], list[Kernel]] = defaultdict(list)
    for kernel in first:
        waiting[kernel.language, work_before[kernel.id]].append(kernel)
    for kernel in second:
        kernels = waiting[kernel.language, work_after[kernel.id]]
        if kernels:
            other = kernels.pop(0)
            same = code_before[other.id] == code_after[kernel.id]
            pairs.append(Match(base_graph(kernel.graph), (other,), (kernel,), same))
            taken |= {id(other), id(kernel)}
    groups = _joined(
        [(0, k, work_before[k.id]) for k in first if id(k) not in taken]
        + [(1, k, work_after[k.id]) for k in second if id(k) not in taken]
    )
    for group in groups:
        one = tuple(kernel for side, kernel in group if side == 0)
        other_ones = tuple(kernel for side, kernel in group if side == 1)
        codes = (
            sorted(code_before[kernel.id] for kernel in one),
            sorted(code_after[kernel.id] for kernel in other_ones),
        )
        graph = base_graph((other_ones or one)[0].graph)
        pairs.append(Match(graph, one, other_ones, codes[0] == codes[1]))
    pairs = _moved(pairs, code_before, code_after)
    places = {id(kernel): place for place, kernel in enumerate(second)}
    places |= {id(kernel): place for place, kernel in enumerate(first) if id(kernel) not in places}
    return sorted(pairs, key=lambda pair: places[id((pair.after or pair.before)[0])])


def _moved(
    pairs: list[Match], code_before: Mapping[str, str], code_after: Mapping[str, str]
) -> list[Match]:
    """Kernels that are gone from one graph and new in another with the same code are the same: the
    graphs are cut elsewhere."""
    gone: dict[Hashable, list[Match]] = defaultdict(list)
    for one in pairs:
        if one.kind == "gone" and len(one.before) == 1:
            (kernel,) = one.before
            gone[kernel.language, kernel.label, code_before[kernel.id]].append(one)
    matches: list[Match] = []
    met: set[int] = set()
    for one in pairs:
        if one.kind == "new" and len(one.after) == 1:
            (kernel,) = one.after
            others = gone[kernel.language, kernel.label, code_after[kernel.id]]
            other = next((each for each in others if each.graph != one.graph), None)
            if other is not None:
                others.remove(other)
                met.add(id(other))
                one = Match(one.graph, other.before, one.after, True)
        matches.append(one)
    return [one for one in matches if id(one) not in met]


class DisjointSets(Generic[T]):
    """Things that belong together (union-find)."""

    def __init__(self) -> None:
        self._above: dict[T, T] = {}

    def root(self, one: T) -> T:
        above = self._above
        above.setdefault(one, one)
        while above[one] != one:
            above[one] = above[above[one]]
            one = above[one]
        return one

    def join(self, those: Iterable[T]) -> None:
        first, *rest = those
        for other in rest:
            self._above[self.root(other)] = self.root(first)
        self.root(first)


def _joined(kernels: list[tuple[int, Kernel, Work]]) -> list[list[tuple[int, Kernel]]]:
    """Kernels grouped by shared work; those of only one side share none."""
    together: DisjointSets[int] = DisjointSets()
    owners: dict[Hashable, dict[int, list[int]]] = defaultdict(lambda: {0: [], 1: []})
    for place, (side, _, work) in enumerate(kernels):
        for piece in work:
            owners[piece][side].append(place)
    for sides in owners.values():
        if sides[0] and sides[1]:
            together.join([*sides[0], *sides[1]])
    groups: dict[int, list[tuple[int, Kernel]]] = defaultdict(list)
    for place, (side, kernel, _) in enumerate(kernels):
        groups[together.root(place)].append((side, kernel))
    return list(groups.values())
