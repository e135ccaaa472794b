"""Edges between two layers as horizontal lanes, one for each source that turns aside.

A lane must be below that of another source whose foot stands where it goes down: else both would
run in one column, and a reader could not tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Net:
    """What one node or dummy sends to the next layer."""

    top: int
    """Column in which it leaves."""
    ends: list[tuple[int, int]] = field(default_factory=list)
    """(node or dummy below, column in which it arrives)."""
    lane: int = -1
    """-1: it runs straight down."""

    @property
    def span(self) -> tuple[int, int]:
        columns = [self.top, *(column for _, column in self.ends)]
        return min(columns), max(columns)


def lanes(nets: list[Net], port: Callable[[int, set[int]], int | None]) -> int:
    """Give every net its lane; returns the number of lanes.

    `port(node, taken)` is another column for entering a block, None if it has none.
    """
    feet = {net.top: index for index, net in enumerate(nets)}
    waits: list[set[int]] = [set() for _ in nets]
    bent = [net.span[0] != net.span[1] for net in nets]
    for index, net in enumerate(nets):
        if bent[index]:
            waits[index] = _above(net, index, nets, feet)
    order = sorted(
        (index for index, _ in enumerate(nets) if bent[index]), key=lambda index: _turn(nets[index])
    )
    used: list[list[tuple[int, int]]] = []
    done = {index for index, _ in enumerate(nets) if not bent[index]}
    while order:
        free = next((i for i in order if waits[i] <= done), None)
        index = _loosened(order, nets, waits, feet, done, port) if free is None else free
        net = nets[index]
        low, high = net.span
        lane = max((nets[other].lane for other in waits[index]), default=-1) + 1
        while lane < len(used) and any(a <= high + 1 and low <= b + 1 for a, b in used[lane]):
            lane += 1
        while len(used) <= lane:
            used.append([])
        used[lane].append((low, high))
        net.lane = lane
        done.add(index)
        order.remove(index)
    return len(used)


def _turn(net: Net) -> tuple[int, int]:
    """To the right: the rightmost first; to the left: the leftmost first. So they do not cross."""
    low, high = net.span
    return (0, -net.top) if high - net.top >= net.top - low else (1, net.top)


def _above(net: Net, index: int, nets: list[Net], feet: dict[int, int]) -> set[int]:
    """The nets whose lanes must be above this one's."""
    found = set()
    for node, column in net.ends:
        other = feet.get(column)
        if other is None or other == index:
            continue
        low, high = nets[other].span
        if low < high or (node, column) not in nets[other].ends:
            found.add(other)
    return found


def _loosened(
    order: list[int],
    nets: list[Net],
    waits: list[set[int]],
    feet: dict[int, int],
    done: set[int],
    port: Callable[[int, set[int]], int | None],
) -> int:
    """Nets wait for each other: let one of them enter its blocks elsewhere."""
    taken = set(feet) | {column for net in nets for _, column in net.ends}
    for index in order:
        net = nets[index]
        ends = []
        for node, column in net.ends:
            other = feet.get(column)
            if other in waits[index] - done:
                column = port(node, taken) or column
                taken.add(column)
            ends.append((node, column))
        net.ends = ends
        waits[index] = _above(net, index, nets, feet)
        if waits[index] <= done:
            return index
    waits[order[0]] &= done
    return order[0]
