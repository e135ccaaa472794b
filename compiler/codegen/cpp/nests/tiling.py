"""Which reads and writes are transposed in tiles, and how many rows a unit has for it.

The code of the transposes is in `transpose.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from tcw.compiler.codegen.choices import NestChooser
from tcw.compiler.codegen.cpp.nests import questions
from tcw.compiler.codegen.cpp.vocabulary.strided import is_near
from tcw.compiler.codegen.nests.facts import Facts, estimate
from tcw.compiler.loops.dtypes import BYTES, compute_dtype
from tcw.compiler.loops.expressions import Address, Read
from tcw.compiler.loops.nest import Let, Reduction, Statement, Write, expressions, reads_in
from tcw.compiler.loops.sizes import Size, product

MOST_TILES = 2
"""Maximum number of reads per nest that are transposed in registers; more do not fit."""
MOST_BLOCKS = 4
"""The same for reads that are transposed into blocks, if no write can be transposed instead. If
that would take as many writes, as in a concatenation, there is no maximum: of 12 tensors of 200 x
300 bfloat16, strided loads take 554 us, blocks 186."""
HALF = 2
"""A tile that is half full takes less time than strided loads of its vectors (12 x 3000 float32: 31
instead of 44 us, of bfloat16 29 instead of 59). A tile that is less full is no faster than loads of
elements near each other, which are whole vectors."""
FAR = 5
"""Minimum number of rows with which a tile of 16 lanes is faster than loads of elements further
apart, one by one (5 x 576 float32, 15 apart: 18 instead of 24 us; 6 rows 15 instead of 42)."""
PAGE, WAYS = 4096, 8
"""The distance in bytes between lines that share an L1 set, and the number of lines per set."""
LARGE = 1 << 21
"""Elements of a nest that exceeds the caches; its tiles are processed in squares."""
SQUARE = 128
"""Rows and columns of a square."""
BLOCK_BYTES = 1 << 15
"""Total size of the blocks into which a nest's tiles are transposed: they stay in L1 during use."""
BLOCK_COLUMNS = 128
"""Columns of a block: eight lines per float32 row, so that few rows are open at a time."""


def tile_axis(
    facts: Facts, lane: int, lanes: int, outer: tuple[int, ...], choose: NestChooser | None = None
) -> int | None:
    """The axis of unit stride for most of the reads that are strided on the lanes."""
    whole = frozenset((*outer, lane))
    if lanes == 1 or not all(_in_tiles(facts, s, whole) for s in facts.nest.statements):
        return None
    found = [
        (axis, _fewest(read, lane, lanes))
        for read in tiled_reads(facts, lane, None)
        for axis in along(read, outer)
    ]
    sizes = facts.nest.axes
    wide = [a for a, least in found if estimate(sizes[a].size) >= least]
    if not wide or estimate(sizes[lane].size) < lanes // HALF:
        return None
    best = max(sorted(set(wide)), key=wide.count)
    reads = len(list(tiled_reads(facts, lane, best)))
    unit = sum(1 in s.address.strides for s in facts.nest.statements if isinstance(s, Write))
    chosen = best if unit >= reads or reads <= (MOST_TILES if unit else MOST_BLOCKS) else None
    return chosen if choose is None else questions.tile(choose, chosen, wide, lanes)


def _in_tiles(facts: Facts, statement: Statement, whole: frozenset[int]) -> bool:
    """Whether a statement may be computed tile by tile: it overwrites, or adds to a rider, once for
    each position."""
    if isinstance(statement, Let):
        return True
    if isinstance(statement, Write) and (statement.terms or statement.mode != "set"):
        return False
    rides = isinstance(statement, Reduction) and not facts.reduced
    return (rides or isinstance(statement, Write)) and facts.domain(statement) == whole


def _fewest(read: Read, lane: int, lanes: int) -> int:
    """The rows of a tile from which transposing it takes less time than the read's own loads."""
    near = is_near(lanes, read.address.strides[lane])
    return lanes // HALF if near else -(-lanes * FAR // 16)


def written_axis(
    facts: Facts, lane: int, lanes: int, outer: tuple[int, ...], choose: NestChooser | None = None
) -> int | None:
    """The axis of unit stride of the writes that are strided on the lanes, where no read has tiles.

    All writes then go through blocks, which are transposed into memory when a unit is done. What is
    less than a tile is moved element by element.
    """
    statements = facts.nest.statements
    if lanes == 1 or not all(isinstance(s, (Let, Write)) for s in statements):
        return None
    if set(facts.nest.reads()) & set(facts.nest.writes()):
        return None
    writes = [s for s in statements if isinstance(s, Write)]
    whole = frozenset((*outer, lane))
    for axis in outer:
        turned = list(turned_writes(facts, lane, axis))
        if (
            turned == writes
            and all(facts.domain(write) == whole for write in writes)
            and all(estimate(facts.nest.axes[a].size) >= lanes for a in (axis, lane))
        ):
            return axis if choose is None else questions.tile(choose, axis, [axis], lanes, "writes")
    return None


def turned_writes(facts: Facts, lane: int, axis: int) -> Iterator[Write]:
    """Writes of whole registers that are strided along the lanes, with unit stride along `axis`."""
    for statement in facts.nest.statements:
        if (
            isinstance(statement, Write)
            and statement.mode == "set"
            and not (statement.terms or statement.address.then)
            and statement.address.strides[lane] not in (0, 1)
            and statement.address.strides[axis] == 1
        ):
            yield statement


def used_at_once(facts: Facts, lane: int, tile: int, lanes: int) -> bool:
    """Whether each tile is used right after its transpose, rather than after a block of them.

    Riders need blocks, whose rows follow each other: the sums of a few columns stay in registers.
    So do more tiles than fit the registers, and tiles that take part of a line while rows evict one
    another: the lines fetched for one tile are evicted before the next tile needs their remainder.
    With 16 lanes, or elements of other sizes than four bytes, blocks are slower even then.
    """
    reads = list(tiled_reads(facts, lane, tile))
    riders = any(isinstance(s, Reduction) for s in facts.nest.statements)
    if riders or len(reads) > MOST_TILES:
        return False
    short = lanes < 16 and all(BYTES[read.dtype] == 4 for read in reads)
    return not (short and aliased_rows(facts, lane, tile))


def aliased_rows(facts: Facts, lane: int, tile: int) -> bool:
    """Whether 16 rows, read or written along the lanes, overload an L1 set.

    Rows of 1024 float32 do: each starts one page after the previous one.
    """

    def aliased(address: Address, dtype: str) -> bool:
        along_the_lanes = address.strides[lane] == 1 and not address.then
        return along_the_lanes and share_a_set(address.strides[tile], dtype, 16)

    for statement in facts.nest.statements:
        if isinstance(statement, Write) and aliased(statement.address, statement.dtype):
            return True
        reads = (part for part in expressions(statement) if isinstance(part, Read))
        if any(aliased(read.address, read.dtype) for read in reads):
            return True
    return False


def short_rows(facts: Facts, lane: int, tile: int) -> bool:
    """Whether there are many rows of few columns, as in an image's channels-last layout."""
    rows, columns = facts.nest.axes[tile].size, facts.nest.axes[lane].size
    return (
        isinstance(rows, int)
        and isinstance(columns, int)
        and columns <= SQUARE
        and rows >= 4 * SQUARE
    )


def square(facts: Facts, lane: int, tile: int, lanes: int) -> tuple[int, int | None]:
    """Rows and columns per unit for tiles used at once: a band of one tile, or a square.

    Along a band each line that is read is in another page. Outside the caches that is slow; there a
    square reads several lines of each page. Short rows are grouped in as many rows, column by
    column: this gives few long runs of reads, while the writes stay in L1.
    """
    sizes = [axis.size for axis in facts.nest.axes]
    elements = product(sizes)
    if short_rows(facts, lane, tile):
        return SQUARE, None
    if not isinstance(elements, int) or elements < LARGE:
        return lanes, None
    rows, columns = (min(SQUARE, -(-estimate(sizes[a]) // lanes) * lanes) for a in (tile, lane))
    return rows, columns


def block(facts: Facts, lane: int, tile: int, lanes: int) -> tuple[int, int]:
    """Rows and columns of the blocks in which tiles lie transposed, in whole tiles."""
    widths = [BYTES[compute_dtype(read.dtype)] for read in tiled_reads(facts, lane, tile)]
    widths += [BYTES[write.dtype] for write in turned_writes(facts, lane, tile)]
    rows = BLOCK_BYTES // (BLOCK_COLUMNS * max(widths) * len(widths))
    rows = max(rows - rows % lanes, lanes)

    def whole(limit: int, axis: int) -> int:
        size = facts.nest.axes[axis].size
        return min(limit, -(-size // lanes) * lanes) if isinstance(size, int) else limit

    return whole(rows, tile), whole(BLOCK_COLUMNS, lane)


def along(read: Read, outer: tuple[int, ...]) -> list[int]:
    return [axis for axis in outer if read.address.strides[axis] == 1]


def tiled_reads(facts: Facts, lane: int, axis: int | None) -> Iterator[Read]:
    """Distinct reads strided along the lanes, with unit stride along `axis` (None: any axis)."""
    for part in dict.fromkeys(reads_in(facts.nest.statements)):
        if (
            isinstance(part, Read)
            and not part.address.then
            and part.dtype != "bool"
            and part.address.strides[lane] not in (0, 1)
            and (axis is None or part.address.strides[axis] == 1)
        ):
            yield part


def share_a_set(step: Size, dtype: str, count: int) -> bool:
    """Whether `count` elements, `step` apart, need more lines of an L1 set than it has."""
    if not isinstance(step, int) or step == 0:
        return False
    return count * gcd(step * BYTES[dtype], PAGE) > WAYS * PAGE
