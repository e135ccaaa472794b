"""Rows that are strided in memory: what a unit reads is transposed before it is traversed.

`softmax(x.t(), -1)` reads along a column and writes along a row. With the columns on the lanes,
each vector of the result would be scattered. Instead, as many rows as there are lanes are
transposed into a block, which reads each line of `x` once, and then traversed as if contiguous.

`softmax(g * x.t(), 0)` has the columns on the lanes, as `g` has. There the block holds all rows of
the unit's columns. If there are many short rows, the rows themselves are on the lanes. What they
read and write then lies in blocks, no vector holds part of a row, and none is reduced across its
lanes.
"""

from __future__ import annotations

from tcw.compiler.codegen.cpp.nests.lane_cost import load_cost, tile_cost
from tcw.compiler.codegen.cpp.nests.tiling import HALF, tiled_reads, turned_writes
from tcw.compiler.codegen.cpp.vocabulary.strided import is_near
from tcw.compiler.codegen.nests.facts import Facts, estimate
from tcw.compiler.loops.dtypes import BYTES, compute_dtype
from tcw.compiler.loops.expressions import Read
from tcw.compiler.loops.nest import Write
from tcw.compiler.loops.sizes import Size, product

BAND_BYTES = 1 << 19
"""Maximum size of a band's blocks; more would not stay in L2 until its rows are traversed."""
JOINED = 1024
"""Maximum number of rows of tiles that cover several axes: 64 columns of float32 that are read and
written then take `BAND_BYTES`."""


def turned_axis(facts: Facts, lane: int, lanes: int, ordered: frozenset[int]) -> int | None:
    """The axis along which reads that are strided on the lanes have unit stride: a kept one, whose
    bands are the units, or one within the rows. None without sequential axes (`tiling.tile_axis`),
    or if it is too short or the blocks too large."""
    axes = frozenset(range(len(facts.nest.axes)))
    if lanes == 1 or not ordered:
        return None
    for statement in facts.nest.statements:
        if isinstance(statement, Write):
            plain = statement.mode == "set" and not statement.terms
            if not plain or not axes - ordered <= facts.domain(statement):
                return None
        elif facts.is_rider(statement) and facts.domain(statement) != axes:
            return None
    others = axes - {lane}
    found = {axis: len(turned(facts, lane, axis, ordered)) for axis in others}
    best = max(others, key=lambda axis: (found[axis], -axis), default=None)
    if best is None or not found[best]:
        return None
    wide, length = rows_of_tiles(facts, lane, best, ordered), facts.nest.axes[lane].size
    if not isinstance(wide, int) or not isinstance(length, int) or length < lanes:
        return None
    least = lanes // HALF if best in ordered else lanes
    if wide < least or not turned_columns(facts, lane, lanes, best, ordered):
        return None
    parts = turned(facts, lane, best, ordered)
    return None if all(_loads_cost_less(part, lane, lanes, wide) for part in parts) else best


def _loads_cost_less(part: Read | Write, lane: int, lanes: int, wide: int) -> bool:
    """Whether a read's elements are so near each other on the lanes that loads of all that lies
    between them cost less than tiles of this many rows. 128 windows of 8 float32, 2, 4 and 8 apart:
    66, 95 and 161 us, in tiles 102, 107 and 116. Rows of two vectors are best on the lanes."""
    step = part.address.strides[lane]
    near = isinstance(part, Read) and is_near(lanes, step) and wide < 2 * lanes
    return near and 1 + load_cost(step, lanes) < tile_cost(wide, lanes)


def turned_columns(facts: Facts, lane: int, lanes: int, axis: int, ordered: frozenset[int]) -> int:
    """The columns of a unit whose blocks stay in the cache, in whole vectors; 0 if these are less
    than a vector, or than the row that is reduced or scanned along the lanes."""
    bytes_ = 0
    wide = rows_of_tiles(facts, lane, axis, ordered) if axis in ordered else lanes
    for part in turned(facts, lane, axis, ordered):
        rows = [facts.nest.axes[a].size for a in within(facts, part, lane, axis, ordered)]
        rows.append(wide)
        size = product(rows)
        if not isinstance(size, int):
            return 0
        bytes_ += max(size, lanes) * BYTES[compute_dtype(part.dtype)]
    columns = BAND_BYTES // bytes_ // lanes * lanes
    return 0 if lane in ordered and columns < estimate(facts.nest.axes[lane].size) else columns


def joined(facts: Facts, lane: int, axis: int, ordered: frozenset[int]) -> tuple[int, ...]:
    """Kept axes whose positions lie side by side with those of a row's `axis`, outermost first.

    Six groups of 3 channels are one tile of 18 rows, and not six of 3; memory is read in order.
    """
    if axis not in ordered or any(map(facts.is_rider, facts.nest.statements)):
        return ()
    parts = turned(facts, lane, axis, ordered)
    wide, found = facts.nest.axes[axis].size, list[int]()
    if any(within(facts, part, lane, axis, ordered) for part in parts):
        return ()
    left = set(range(len(facts.nest.axes))) - ordered - {lane}
    while isinstance(wide, int):
        beside = [a for a in left if all(part.address.strides[a] == wide for part in parts)]
        size = facts.nest.axes[beside[0]].size if len(beside) == 1 else None
        if not isinstance(size, int) or wide * size > JOINED:
            break
        left.remove(beside[0])
        found.insert(0, beside[0])
        wide *= size
    return tuple(found)


def rows_of_tiles(facts: Facts, lane: int, axis: int, ordered: frozenset[int]) -> Size:
    """The size of an axis and of those that are joined to it."""
    axes = (axis, *joined(facts, lane, axis, ordered))
    return facts.nest.size(axes)


def turned(facts: Facts, lane: int, axis: int, ordered: frozenset[int]) -> list[Read | Write]:
    """What lies in blocks: reads, and results if units are not bands of the axis."""
    return [*turned_reads(facts, lane, axis), *turned_results(facts, lane, axis, ordered)]


def turned_results(facts: Facts, lane: int, axis: int, ordered: frozenset[int]) -> list[Write]:
    """Writes with a stride along the lanes and unit stride along `axis`, if it alone is a row's."""
    if ordered != {axis} or set(facts.nest.reads()) & set(facts.nest.writes()):
        return []
    return list(turned_writes(facts, lane, axis))


def within(
    facts: Facts, part: Read | Write, lane: int, axis: int, ordered: frozenset[int]
) -> list[int]:
    """The axes of a row that the block of a read or write has besides those of its tiles."""
    return sorted((facts.moves(part.address) & ordered) - {lane, axis})


def turned_reads(facts: Facts, lane: int, axis: int) -> list[Read]:
    """Distinct reads with a stride along the lanes and unit stride along `axis`.

    Excludes buffers that the nest writes itself, since a block would hold their old content.
    """
    written = facts.nest.writes()
    return [read for read in tiled_reads(facts, lane, axis) if read.buffer not in written]
