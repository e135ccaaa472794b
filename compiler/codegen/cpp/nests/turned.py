"""Rows that are strided in memory: what a unit reads is transposed before it is traversed.

`softmax(x.t(), -1)` reads along a column and writes along a row. With the columns on the lanes,
each vector of the result would be scattered. Instead, as many rows as there are lanes are
transposed into a block, which reads each line of `x` once, and then traversed as if contiguous.

`softmax(g * x.t(), 0)` has the columns on the lanes, as `g` has. There the block holds all rows of
the unit's columns.
"""

from __future__ import annotations

from compiler.codegen.nests.facts import Facts, estimate
from compiler.loops.dtypes import BYTES, compute_dtype
from compiler.loops.expressions import Read
from compiler.loops.nest import Write, expressions
from compiler.loops.sizes import product

BAND_BYTES = 1 << 19
"""Maximum size of a band's blocks; more would not stay in L2 until its rows are traversed."""
COST = 6
"""Cost of a transposed read in vector instructions: its load, transpose steps and store."""


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
    best = max(others, key=lambda axis: (len(turned_reads(facts, lane, axis)), -axis), default=None)
    if best is None or not turned_reads(facts, lane, best):
        return None
    sizes = [facts.nest.axes[axis].size for axis in (best, lane)]
    if not all(isinstance(size, int) and size >= lanes for size in sizes):
        return None
    return best if turned_columns(facts, lane, lanes, best, ordered) else None


def turned_columns(facts: Facts, lane: int, lanes: int, axis: int, ordered: frozenset[int]) -> int:
    """The columns of a unit whose blocks stay in the cache, in whole vectors; 0 if these are less
    than a vector, or than the row that is reduced or scanned along the lanes."""
    bytes_ = 0
    for read in turned_reads(facts, lane, axis):
        rows = [facts.nest.axes[a].size for a in within(facts, read, lane, axis, ordered)]
        rows.append(facts.nest.axes[axis].size if axis in ordered else lanes)
        size = product(rows)
        if not isinstance(size, int):
            return 0
        bytes_ += size * BYTES[compute_dtype(read.dtype)]
    columns = BAND_BYTES // bytes_ // lanes * lanes
    return 0 if lane in ordered and columns < estimate(facts.nest.axes[lane].size) else columns


def within(facts: Facts, read: Read, lane: int, axis: int, ordered: frozenset[int]) -> list[int]:
    """The axes of a row that a block of a read has besides those of its tiles."""
    return sorted((facts.moves(read.address) & ordered) - {lane, axis})


def turned_reads(facts: Facts, lane: int, axis: int) -> list[Read]:
    """Distinct reads with a stride along the lanes and unit stride along `axis`.

    Excludes buffers that the nest writes itself, since a block would hold their old content.
    """
    written = facts.nest.writes()
    found: dict[Read, None] = {}
    for statement in facts.nest.statements:
        for part in expressions(statement):
            if (
                isinstance(part, Read)
                and not part.address.then
                and part.dtype != "bool"
                and part.buffer not in written
                and part.address.strides[lane] not in (0, 1)
                and part.address.strides[axis] == 1
            ):
                found[part] = None
    return list(found)
