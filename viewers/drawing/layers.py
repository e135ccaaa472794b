"""Layers of a directed acyclic graph, and the order within each.

Nodes are numbers from 0, in topological order: every edge leads from a lower to a higher number.
A source whose readers stand further down gets one *trunk*: a chain of dummies, one a layer, that
all its long edges share. Trunks are what makes a layout slow, so their number is bounded: edges
that are too long for that are left out of the layout and named in their blocks instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tcw.viewers.collected import grouped

Edge = tuple[int, int]

DUMMIES = 3000
"""Dummies that a layout may have, in addition to one for each node."""
SWAPPED_MOST = 8000
"""Nodes and dummies up to which neighbours are tried in the other order too."""
SWEEPS = 24
STALE = 4
"""Sweeps without fewer crossings after which the order is left as it is."""


@dataclass(frozen=True)
class Layered:
    """Nodes and dummies by layer, in their order."""

    layer: list[int]
    """Of each node, then of each dummy."""
    source: list[int]
    """Dummy -> the node whose trunk it belongs to; index 0 is the first dummy."""
    below: list[list[int]]
    """Of each node and dummy: what it leads to in the next layer."""
    above: list[list[int]]
    rows: list[list[int]]
    """Layer -> its nodes and dummies, left to right."""
    far: list[Edge]
    """Edges that were too long to be drawn."""

    @property
    def count(self) -> int:
        """How many of the numbers are nodes."""
        return len(self.layer) - len(self.source)


def targets_of(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    """Node -> the nodes that its edges lead to."""
    found: list[list[int]] = [[] for _ in range(count)]
    for first, second in edges:
        found[first].append(second)
    return found


def layers_of(count: int, edges: Sequence[Edge]) -> list[int]:
    """The layer of each node: one below the lowest that it reads. A node that reads nothing stands
    just above its first reader."""
    layer = [0] * count
    readers = targets_of(count, edges)
    reading = {second for _, second in edges}
    for node in range(count):
        after = layer[node] + 1
        for reader in readers[node]:
            if layer[reader] < after:
                layer[reader] = after
    for node in range(count):
        if node not in reading and readers[node]:
            layer[node] = min(layer[reader] for reader in readers[node]) - 1
    return layer


def layered(count: int, edges: Sequence[Edge]) -> Layered:
    """Layers, trunks and orders: the same for the same graph."""
    layer = layers_of(count, edges)
    longest = _longest(count, edges, layer)
    far = [edge for edge in edges if layer[edge[1]] - layer[edge[0]] > longest]
    below: list[list[int]] = [[] for _ in range(count)]
    source: list[int] = []
    targets = grouped(edge for edge in edges if layer[edge[1]] - layer[edge[0]] <= longest)
    for first, seconds in targets.items():
        seconds.sort(key=lambda node: (layer[node], node))
        at, here = first, layer[first]
        for second in seconds:
            while here < layer[second] - 1:
                dummy = len(layer)
                here += 1
                layer.append(here)
                below.append([])
                source.append(first)
                below[at].append(dummy)
                at = dummy
            below[at].append(second)
    upwards = ((lower, upper) for upper, lowers in enumerate(below) for lower in lowers)
    above = targets_of(len(layer), upwards)
    rows = _ordered(_first_rows(layer), above, below)
    return Layered(layer, source, below, above, rows, far)


def _longest(count: int, edges: Sequence[Edge], layer: list[int]) -> int:
    """The span up to which edges are drawn."""
    spans: dict[int, int] = {}
    longest = 1
    reach: list[list[int]] = [[] for _ in range(count)]
    for first, second in edges:
        span = layer[second] - layer[first]
        reach[first].append(span)
        longest = max(longest, span)
    budget = DUMMIES + count
    while longest > 1:
        spans = {
            n: max((s for s in all_ if s <= longest), default=1) for n, all_ in enumerate(reach)
        }
        if sum(span - 1 for span in spans.values()) <= budget:
            break
        longest //= 2
    return longest


def _first_rows(layer: list[int]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, at in enumerate(layer):
        rows[at].append(node)
    return rows


def _ordered(
    rows: list[list[int]], above: list[list[int]], below: list[list[int]]
) -> list[list[int]]:
    """Barycentres, swept down and up, each sweep followed by swaps of neighbours; the order with
    the fewest crossings is kept. Starts twice: with a sweep down, then with a sweep up.

    Gansner, Koutsofios, North and Vo: A Technique for Drawing Directed Graphs (1993), section 3.
    """
    best, fewest = rows, crossings(rows, below)
    swap = sum(map(len, rows)) <= SWAPPED_MOST
    for upwards in (0, 1):
        found, stale = [list(row) for row in rows], 0
        for sweep in range(SWEEPS):
            if not fewest or stale == STALE:
                break
            down = sweep % 2 == upwards
            _sweep(found, above if down else below, down)
            if swap:
                _swap(found, above, below)
            count = crossings(found, below)
            stale += 1
            if count < fewest:
                best, fewest, stale = [list(row) for row in found], count, 0
    return best


def _sweep(rows: list[list[int]], neighbours: list[list[int]], down: bool) -> None:
    """Sort each row by the mean place of its nodes' neighbours in the row before it."""
    place = {node: at for row in rows for at, node in enumerate(row)}
    for row in rows if down else reversed(rows):
        centre = {
            node: sum(place[other] for other in neighbours[node]) / len(neighbours[node])
            if neighbours[node]
            else place[node]
            for node in row
        }
        row.sort(key=lambda node: (centre[node], place[node]))
        for at, node in enumerate(row):
            place[node] = at


def _swap(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Swap neighbours in a row where fewer of their links cross then."""
    place = {node: at for row in rows for at, node in enumerate(row)}
    for row in rows:
        ends = {
            node: [sorted(place[one] for one in links[node]) for links in (above, below)]
            for node in row
        }
        for at in range(len(row) - 1):
            left, right = row[at], row[at + 1]
            now = sum(map(_crossed, ends[left], ends[right]))
            if now and sum(map(_crossed, ends[right], ends[left])) < now:
                row[at], row[at + 1] = right, left
        for at, node in enumerate(row):
            place[node] = at


def _crossed(left: list[int], right: list[int]) -> int:
    """The number of crossings between the links of a node and those of its right neighbour, which
    lead to these sorted places."""
    return sum(bisect_left(right, place) for place in left)


def crossings(rows: list[list[int]], below: list[list[int]]) -> int:
    """The number of pairs of links between neighbouring layers that cross."""
    count = 0
    for upper, lower in pairwise(rows):
        place = {node: at for at, node in enumerate(lower)}
        ends = [end for node in upper for end in sorted(place[other] for other in below[node])]
        tree = [0] * (len(lower) + 1)
        for seen, end in enumerate(ends):
            at, before = end + 1, 0
            while at:
                before += tree[at]
                at &= at - 1
            count += seen - before
            at = end + 1
            while at <= len(lower):
                tree[at] += 1
                at += at & -at
    return count
