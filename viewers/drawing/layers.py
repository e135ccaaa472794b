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


GAP, NARROW = 3, 2
"""Cells between two blocks; between a block and a trunk, or two trunks."""


def columns(drawn: Layered, widths: list[int]) -> list[int]:
    """The column of the centre of each node and dummy, from 0 at the left edge of the drawing:
    Brandes and Köpf, *Fast and Simple Horizontal Coordinate Assignment* (GD 2001), with widths as
    in dagre (lib/position/bk.js).

    Trunks of long edges are kept straight; four placements (aligned with what is above or below,
    packed to the left or right) are made, and each node stands between the middle two. A node of
    width w covers the cells from `centre - w // 2` on.
    """
    count = drawn.count
    if not drawn.layer:
        return []
    left = [widths[node] // 2 if node < count else 0 for node in range(len(drawn.layer))]
    right = [widths[n] - 1 - left[n] if n < count else 0 for n in range(len(drawn.layer))]
    marked = _conflicts(drawn)
    placements: list[list[int]] = []
    for up in (True, False):
        rows = drawn.rows if up else drawn.rows[::-1]
        neighbours = drawn.above if up else drawn.below
        for mirrored in (False, True):
            turned = [row[::-1] for row in rows] if mirrored else rows
            root = _aligned(turned, neighbours, marked, up)
            before, after = (right, left) if mirrored else (left, right)
            placed = _compacted(turned, root, before, after, count)
            placements.append([-x for x in placed] if mirrored else placed)
    return _balanced(placements, left, right)


def _conflicts(drawn: Layered) -> set[tuple[int, int]]:
    """Links that cross a trunk: the trunk stays straight."""
    count = drawn.count
    marked: set[tuple[int, int]] = set()
    for upper, lower in pairwise(drawn.rows):
        place = {node: at for at, node in enumerate(upper)}
        low = scanned = 0
        for at, node in enumerate(lower):
            parents = drawn.above[node]
            inner = node >= count and parents and parents[0] >= count
            if not inner and at < len(lower) - 1:
                continue
            high = place[parents[0]] if inner else len(upper) - 1
            for other in lower[scanned : at + 1]:
                for parent in drawn.above[other]:
                    if not low <= place[parent] <= high and (parent < count or other < count):
                        marked.add((parent, other))
            scanned, low = at + 1, high
    return marked


def _aligned(
    rows: list[list[int]], neighbours: list[list[int]], marked: set[tuple[int, int]], up: bool
) -> list[int]:
    """The root of each node: nodes with the same root are in one column."""
    size = len(neighbours)
    root, align = list(range(size)), list(range(size))
    for upper, lower in pairwise(rows):
        place = {node: at for at, node in enumerate(upper)}
        last = -1
        for node in lower:
            others = neighbours[node]
            if not others:
                continue
            ordered = sorted(others, key=place.__getitem__) if len(others) > 1 else others
            middle = len(ordered) - 1
            for at in {middle // 2, (middle + 1) // 2}:
                if align[node] != node:
                    break
                other = ordered[at]
                link = (other, node) if up else (node, other)
                if last < place[other] and link not in marked:
                    align[other] = node
                    root[node] = root[other]
                    align[node] = root[node]
                    last = place[other]
    return root


def _compacted(
    rows: list[list[int]], root: list[int], before: list[int], after: list[int], count: int
) -> list[int]:
    """Each column as far to the left as possible, then moved to the right where that makes nothing
    wider."""
    least: dict[tuple[int, int], int] = {}
    for row in rows:
        for first, second in pairwise(row):
            gap = GAP if first < count and second < count else NARROW
            apart = after[first] + before[second] + gap + 1
            pair = root[first], root[second]
            if least.get(pair, 0) < apart:
                least[pair] = apart
    size = len(root)
    follows: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    waits = [0] * size
    for (first, second), apart in least.items():
        follows[first].append((second, apart))
        waits[second] += 1
    x = [0] * size
    ready = [node for node in range(size) if root[node] == node and not waits[node]]
    for node in ready:
        for other, apart in follows[node]:
            if x[other] < x[node] + apart:
                x[other] = x[node] + apart
            waits[other] -= 1
            if not waits[other]:
                ready.append(other)
    for node in reversed(ready):
        if follows[node]:
            x[node] = max(x[node], min(x[other] - apart for other, apart in follows[node]))
    return [x[root[node]] for node in range(size)]


def _balanced(placements: list[list[int]], left: list[int], right: list[int]) -> list[int]:
    """The mean of the middle two of the four, lined up with the narrowest."""
    edges = [
        (min(x - w for x, w in zip(p, left, strict=True)),
         max(x + w for x, w in zip(p, right, strict=True)))
        for p in placements
    ]  # fmt: skip
    low, high = min(edges, key=lambda edge: edge[1] - edge[0])
    shifts = [low - a if i % 2 == 0 else high - b for i, (a, b) in enumerate(edges)]
    moved = [[x + by for x in p] for p, by in zip(placements, shifts, strict=True)]
    middle = []
    for four in zip(*moved, strict=True):
        _, second, third, _ = sorted(four)
        middle.append((second + third) // 2)
    start = min(x - w for x, w in zip(middle, left, strict=True))
    return [x - start for x in middle]
