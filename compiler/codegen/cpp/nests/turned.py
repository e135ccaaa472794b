"""Reduced rows that are strided in memory: a band of them is transposed before it is traversed.

`softmax(x.t(), -1)` reads along a column and writes along a row. With the columns on the lanes,
each vector of the result would be scattered. Instead, as many rows as there are lanes are
transposed into a block, which reads each line of `x` once, and then traversed as if contiguous.
"""

from __future__ import annotations

from math import prod

from compiler.codegen.nests.facts import Facts
from compiler.loops.dtypes import BYTES, compute_dtype
from compiler.loops.expressions import Read
from compiler.loops.nest import ScanAlong, Write, expressions

BAND_BYTES = 1 << 19
"""Maximum size of a band's blocks; more would not stay in L2 until its rows are traversed."""
COST = 6
"""Cost of a transposed read in vector instructions: its load, transpose steps and store."""


def turned_axis(facts: Facts, lane: int, lanes: int, ordered: frozenset[int]) -> int | None:
    """The axis of a band: reads that are strided on the lanes have unit stride along it."""
    nest = facts.nest
    kept = frozenset(range(len(nest.axes))) - facts.reduced
    if lanes == 1 or facts.reduced != {lane} or ordered != {lane}:
        return None
    for statement in nest.statements:
        if isinstance(statement, Write):
            if statement.terms or statement.mode != "set" or not kept <= facts.domain(statement):
                return None
        elif facts.is_rider(statement) or (
            isinstance(statement, ScanAlong) and statement.axis != lane
        ):
            return None
    best = max(kept, key=lambda axis: (len(turned_reads(facts, lane, axis)), -axis), default=None)
    if best is None:
        return None
    reads, length = turned_reads(facts, lane, best), nest.axes[lane].size
    wide, rows = nest.axes[best].size, lanes
    if not reads or not isinstance(length, int) or not isinstance(wide, int) or wide < lanes:
        return None
    bytes_ = sum(prod((length, rows, BYTES[compute_dtype(read.dtype)])) for read in reads)
    return best if lanes <= length and bytes_ <= BAND_BYTES else None


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
