"""Pairs of nodes whose groups might share a nest, sorted by the bytes that fusing saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tcw.compiler.fusion.merge import Grouping
from tcw.compiler.fusion.rows import elements, ends_of
from tcw.compiler.fusion.weights import L2
from tcw.compiler.loops.expressions import Gather, Load
from tcw.compiler.loops.graph import Call, Map, Store
from tcw.compiler.loops.layouts import Layout, normalize
from tcw.compiler.loops.sizes import Size

CandidateKind = Literal["vertical", "horizontal"]
WORTH = 8
"""Siblings must share at least one byte per this many elements of the smaller domain."""
READERS = 12
"""A value read by more groups than this is no reason to fuse them."""
SMALL = 1 << 16
"""Number of elements up to which a loop's start-up is a notable part of its cost."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Two nodes, by their places."""

    kind: CandidateKind
    first: int
    second: int
    score: int
    """Bytes whose write or repeated read is saved."""
    shared: int | None = None
    """Bytes of inputs that both read; None for candidates not scored by them."""


def vertical(grouping: Grouping) -> list[Candidate]:
    """Producers with their readers. A value with a single reader need not be written at all."""
    candidates: list[Candidate] = []
    for place, edges in enumerate(grouping.edges.of_producer):
        if not edges:
            continue
        producer = edges[0].producer
        size = grouping.weights.bytes(producer)
        readers = dict.fromkeys(edge.reader_place for edge in edges)
        alone = len(readers) == 1 and producer.name not in grouping.fixed
        candidates.extend(
            Candidate("vertical", place, reader, size * (2 if alone else 1)) for reader in readers
        )
    return _sorted(candidates)


def siblings(grouping: Grouping) -> list[Candidate]:
    """Groups that read the same memory."""
    readers: dict[str, dict[int, int]] = {}
    walks: dict[tuple[str, int], set[Layout | None]] = {}
    weights, home = grouping.weights, grouping.home
    nodes = grouping.order.nodes
    for place, leaves in enumerate(grouping.edges.leaves):
        node = nodes[place]
        if isinstance(node, Call) or not leaves:
            continue
        size = elements(node.domain)
        for leaf in leaves:
            made = grouping.order.place.get(leaf.value)
            if made is not None and home[made] == home[place]:
                continue
            groups = readers.setdefault(leaf.value, {})
            touched = weights.touched(leaf, size)
            groups[home[place]] = max(groups.get(home[place], 0), touched)
            if touched > L2 and weights.machine.runs:
                walks.setdefault((leaf.value, home[place]), set()).add(_walk(leaf, size))
    shared: dict[tuple[int, int], int] = {}
    for value, groups in readers.items():
        if len(groups) > READERS:
            continue
        listed = sorted(groups)
        for i, one in enumerate(listed):
            for two in listed[i + 1 :]:
                both = min(groups[one], groups[two])
                if _never_meet(walks.get((value, one), set()), walks.get((value, two), set())):
                    both = 0
                shared[one, two] = shared.get((one, two), 0) + both
    return _sorted(
        [Candidate("horizontal", one, two, both, both) for (one, two), both in shared.items()]
    )


def _walk(leaf: Load | Gather, size: Size) -> Layout | None:
    """How a loop over `size` elements walks through the memory of a read, from its largest stride
    to the smallest: the same for a tensor and its transpose. None if that is not known, or if it
    reads elements again."""
    if isinstance(leaf, Gather) or len(leaf.view) > 1:
        return None
    inner = leaf.view[0] if leaf.view else Layout((size,), (1,))
    steps = [stride for stride in inner.strides if isinstance(stride, int) and stride != 0]
    if len(steps) != len(inner.strides):
        return None
    digits = sorted(zip(steps, inner.shape, strict=True), key=lambda digit: -abs(digit[0]))
    return normalize(Layout(tuple(n for _, n in digits), tuple(step for step, _ in digits)))


def _never_meet(one: set[Layout | None], two: set[Layout | None]) -> bool:
    """Whether the two never read the same lines at the same time in a common loop: one walks
    through all of the memory, the other skips rows (differences along two different dimensions).

    The loop then has the streams of both, and what one reads has left the cache when the other gets
    there: the middles of `torch.gradient` of 102^3, written in C++, take 1,030 us in one loop on a
    Xeon, and 370 and 360 in two.
    """
    return bool(one and two) and None not in one | two and not one & two


def least_shared(grouping: Grouping, candidate: Candidate) -> int:
    """The minimum number of bytes that siblings must share for a common loop to pay off."""
    groups = [grouping.groups[grouping.home[p]] for p in (candidate.first, candidate.second)]
    least = min(grouping.weights.number(group.size) for group in groups)
    return -(-least // WORTH)


def twins(grouping: Grouping) -> list[Candidate]:
    """Consecutive small pointwise loops over domains of equal size, as in an optimizer step."""
    candidates: list[Candidate] = []
    last: dict[Size, int] = {}
    for place, group in sorted(grouping.groups.items()):
        plain = group.mask is None and not group.space.riders
        if not plain or grouping.weights.number(group.size) > SMALL:
            continue
        if not all(isinstance(node, (Map, Store)) for node in group.members):
            continue
        before = last.get(group.size)
        if before is not None:
            candidates.append(Candidate("horizontal", before, place, 0))
        last[group.size] = place
    return candidates


def pieces(grouping: Grouping) -> list[Candidate]:
    """Stores to one buffer over domains of equal size, the pieces of a cat; and those to the ends
    of rows with the rows."""
    candidates: list[Candidate] = []
    last: dict[tuple[str, Size], int] = {}
    rows: dict[tuple[str, Size], int] = {}
    for place, node in enumerate(grouping.order.nodes):
        if not isinstance(node, Store):
            continue
        key = (node.buffer, elements(node.domain))
        before = rows.get(key)
        if before is not None and _joins_rows(grouping, before, node):
            candidates.append(Candidate("horizontal", before, place, 0))
        elif key in last:
            candidates.append(Candidate("horizontal", last[key], place, 0))
        last[key] = place
        rows.setdefault((node.buffer, elements(node.domain[:-1])), place)
    return candidates


def _joins_rows(grouping: Grouping, rows: int, ends: Store) -> bool:
    node = grouping.order.nodes[rows]
    return grouping.weights.machine.runs and isinstance(node, Store) and ends_of(node, ends)


def _sorted(candidates: list[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda c: (-c.score, c.first, c.second))
