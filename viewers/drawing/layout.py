"""A layered drawing in cells: where each block is, and the lines between them.

Vertical places of lines are counted in half cells: the upper edge of row y is 2y, its middle 2y+1.
So a line can begin or end inside a cell, and what meets there becomes one junction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tcw.viewers.drawing.layers import Edge, Layered, columns, layered

TILE_WIDTH, TILE_HEIGHT = 64, 16


@dataclass(frozen=True, slots=True)
class Box:
    """Cells that a block covers."""

    x: int
    y: int
    width: int
    height: int

    @property
    def centre(self) -> int:
        return self.x + self.width // 2


@dataclass(frozen=True, slots=True)
class Down:
    """A vertical line in column `x`, from half row `top` to `bottom`."""

    x: int
    top: int
    bottom: int


@dataclass(frozen=True, slots=True)
class Across:
    """A horizontal line in row `y`, from the middle of column `left` to that of `right`."""

    y: int
    left: int
    right: int


Line = Down | Across


@dataclass
class DrawnBlocks:
    """A drawing. `boxes` in the order of the blocks that were given."""

    boxes: list[Box]
    width: int
    height: int
    far: list[Edge]
    """Edges that are too long to draw."""
    rows: list[list[int]]
    """The blocks of each layer, left to right."""
    layer: list[int]
    """The layer of each block."""
    _drawn: Layered
    _nets: list[dict[int, Net]]
    """By layer: what each node or dummy sends down."""
    _centres: list[int]
    _tops: list[int]
    """First row of each layer; then the row after the last."""
    _deep: list[int]
    """Rows of the blocks of each layer."""
    _tiles: dict[tuple[int, int], list[tuple[Line | None, int]]] = field(default_factory=dict)

    def lines(self) -> Iterator[Line]:
        """All lines."""
        for nets in self._nets:
            for node, net in nets.items():
                yield from self._of_net(node, net, None)
        for dummy in range(self._drawn.count, len(self._drawn.layer)):
            yield self._through(dummy)

    def route(self, first: int, second: int) -> list[Line]:
        """The lines of one edge; empty for one that is not drawn."""
        drawn = self._drawn
        chain = [second]
        while True:
            parents = drawn.above[chain[-1]]
            parent = next(
                (p for p in parents if p == first or (p >= drawn.count
                 and drawn.source[p - drawn.count] == first)),
                None,
            )  # fmt: skip
            if parent is None:
                return []
            chain.append(parent)
            if parent == first:
                break
        chain.reverse()
        lines: list[Line] = []
        for upper, lower in pairwise(chain):
            if upper >= drawn.count:
                lines.append(self._through(upper))
            lines.extend(self._of_net(upper, self._nets[drawn.layer[upper]][upper], lower))
        return lines

    def _through(self, dummy: int) -> Down:
        layer = self._drawn.layer[dummy]
        top = self._tops[layer]
        return Down(self._centres[dummy], 2 * top, 2 * (top + self._deep[layer]))

    def _of_net(self, node: int, net: Net, only: int | None) -> Iterator[Line]:
        """The lines of a net, or those of it that lead to one of its ends."""
        layer = self._drawn.layer[node]
        channel = self._tops[layer] + self._deep[layer]
        foot = channel
        if node < self._drawn.count:
            foot = self.boxes[node].y + self.boxes[node].height
        end = 2 * self._tops[layer + 1]
        if net.lane < 0:
            yield Down(net.top, 2 * foot, end)
            return
        lane = channel + net.lane
        yield Down(net.top, 2 * foot, 2 * lane + 1)
        ends = [column for below, column in net.ends if only is None or below == only]
        low, high = min(net.top, *ends), max(net.top, *ends)
        if low < high:
            yield Across(lane, low, high)
        for column in dict.fromkeys(ends):
            yield Down(column, 2 * lane + 1, end)

    # Finding what is in sight

    def tile(self, row: int, column: int) -> list[tuple[Line | None, int]]:
        """What touches a tile: lines, and blocks as (None, number). The index is built at the first
        call."""
        if not self._tiles and self.boxes:
            self._index()
        return self._tiles.get((row, column), [])

    def _index(self) -> None:
        tiles: dict[tuple[int, int], list[tuple[Line | None, int]]] = defaultdict(list)
        for line in self.lines():
            if isinstance(line, Down):
                across = (line.x // TILE_WIDTH,)
                last = max(line.top, line.bottom - 1) // 2
                down = range(line.top // 2 // TILE_HEIGHT, last // TILE_HEIGHT + 1)
                for row in down:
                    tiles[row, across[0]].append((line, -1))
            else:
                row = line.y // TILE_HEIGHT
                for column in range(line.left // TILE_WIDTH, line.right // TILE_WIDTH + 1):
                    tiles[row, column].append((line, -1))
        for number, box in enumerate(self.boxes):
            for row in range(box.y // TILE_HEIGHT, (box.y + box.height - 1) // TILE_HEIGHT + 1):
                last = (box.x + box.width - 1) // TILE_WIDTH
                for column in range(box.x // TILE_WIDTH, last + 1):
                    tiles[row, column].append((None, number))
        self._tiles = dict(tiles)

    def at(self, x: int, y: int) -> int:
        """The block at a cell; -1 if there is none."""
        for line, number in self.tile(y // TILE_HEIGHT, x // TILE_WIDTH):
            if line is None:
                box = self.boxes[number]
                if box.x <= x < box.x + box.width and box.y <= y < box.y + box.height:
                    return number
        return -1

    def beside(self, block: int, step: int) -> int:
        """The nearest block on one side (-1: left, 1: right), in this layer or one close to it; -1
        for none."""
        if not 0 <= block < len(self.boxes):
            return -1
        here, layer = self.boxes[block], self.layer[block]
        for far in range(4):
            found = [
                n
                for at in {layer - far, layer + far}
                if 0 <= at < len(self.rows)
                for n in self.rows[at]
                if (self.boxes[n].centre - here.centre) * step > 0
            ]
            if found:
                return min(
                    found, key=lambda n: (abs(self.boxes[n].centre - here.centre), self.boxes[n].y)
                )
        return -1


def lay_out(sizes: Sequence[tuple[int, int]], edges: Sequence[Edge]) -> DrawnBlocks:
    """Place blocks of these sizes (cells across, rows) so that every edge leads down.

    Edges lead from a lower to a higher number.
    """
    drawn = layered(len(sizes), edges)
    widths = [width for width, _ in sizes]
    centres = columns(drawn, widths)
    count = drawn.count
    deep = [max((sizes[n][1] for n in row if n < count), default=1) for row in drawn.rows]
    tops: list[int] = []
    nets_of: list[dict[int, Net]] = []
    y = 0
    for index, row in enumerate(drawn.rows):
        tops.append(y)
        nets = {
            node: Net(centres[node], [(below, centres[below]) for below in drawn.below[node]])
            for node in row
            if drawn.below[node]
        }

        def port(node: int, taken: set[int]) -> int | None:
            """The free column of a block that is nearest to its middle."""
            if node >= count:
                return None
            start = centres[node] - widths[node] // 2
            inside = range(start, start + widths[node])
            free = (column for column in inside if column not in taken)
            return min(free, key=lambda column: abs(column - centres[node]), default=None)

        between = lanes(list(nets.values()), port)
        nets_of.append(nets)
        last = index == len(drawn.rows) - 1
        y += deep[index] + (0 if last else max(1, between))
    boxes = [
        Box(centres[n] - widths[n] // 2, tops[drawn.layer[n]], *sizes[n]) for n in range(count)
    ]
    width = max((centre + 1 for centre in centres), default=0)
    width = max([width, *(box.x + box.width for box in boxes)])
    rows = [[node for node in row if node < count] for row in drawn.rows]
    layer = drawn.layer[:count]
    found = boxes, width, y, drawn.far, rows, layer
    return DrawnBlocks(*found, drawn, nets_of, centres, [*tops, y], deep)


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
    """Give every net its lane; returns the number of lanes. A lane must be below that of another
    source whose foot stands where it goes down: else both would run in one column, and a reader
    could not tell them apart.

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
