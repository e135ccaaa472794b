"""Columns of a layered drawing, by width: Brandes and Köpf, *Fast and Simple Horizontal Coordinate
Assignment* (GD 2001), with widths as in dagre (lib/position/bk.js).

Trunks of long edges are kept straight; four placements (aligned with what is above or below, packed
to the left or right) are made, and each node stands between the middle two.
"""

from __future__ import annotations

from itertools import pairwise

from tcw.viewers.drawing.layers import Layered

GAP, NARROW = 3, 2
"""Cells between two blocks; between a block and a trunk, or two trunks."""


def columns(drawn: Layered, widths: list[int]) -> list[int]:
    """The column of the centre of each node and dummy, from 0 at the left edge of the drawing.

    A node of width w covers the cells from `centre - w // 2` on.
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
