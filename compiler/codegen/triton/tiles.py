"""The tile of a program: how many positions and rows it takes, and with how many threads.

A thread moves memory 16 bytes at a time, so it gets at least as many neighbouring elements of the
narrowest dtype as these hold. A program holds a whole row if that fits in its registers: about 32
elements a thread are fastest, 64 of the 16-bit dtypes in long rows, 16 in short ones. Few threads a
program mean that a reduction waits for few, and many programs a processor hide each other's waits.
The numbers were measured on an H100 and an H200 (docs/performance.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcw.compiler.codegen.triton.limits import (
    RIDING_STAGES,
    STEP,
    Limits,
    part_step,
    positions_across,
    power_of_two,
)
from tcw.compiler.codegen.triton.parts import Part
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Read, ReadIndexed
from tcw.compiler.loops.nest import Nest, Reduction, ScanAlong, Write, expressions, reads_in

WARP = 32
VECTOR = 16
"""Bytes that one instruction of a thread moves."""
PER_THREAD = 32
"""Elements of a row that a thread holds."""
MOST_A_THREAD = 128
"""The most elements that fit in registers, for any computation."""
STEPS = 1 << 14
"""Elements of a long row that a program takes at a time."""
MOMENTS = 1 << 13
"""The same if each lane holds a mean and its squared distances."""
SUMMED = 128
"""Columns of 16-bit elements that a program takes of a sum over many rows: two cache lines of each.
A mean and its squared distances leave registers for half as many."""
SCANNED = 2048
"""Elements from which a program scans one row, in few warps: each more is another to wait for. On
an H100, µs with two rows in up to 16 warps, then by this rule: 8192x8192 float32 202 and 181,
bfloat16 126 and 92, 4096x16384 float32 275 and 200, 16384x4096 bfloat16 103 and 91."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What one program computes at a time."""

    x: tuple[int, ...]
    """Kept axes, of which a program takes `x_block` positions."""
    r: tuple[int, ...]
    """Reduced axes; of a pointwise kernel, those along which tiles are transposed."""
    x_block: int
    r_block: int
    """0 if there is no second dimension."""
    warps: int
    looped: bool = False
    """A row takes several steps of `r_block`."""
    stages: int = 1
    """Steps of the kernel's loop whose loads are in flight at a time."""
    online: bool = True
    """A looped row is read once for its greatest element and a sum relative to it."""

    @property
    def words(self) -> str:
        """As the choice of a decision: `2x1024-4warps-3stages`."""
        block = f"{self.x_block}x{self.r_block}" if self.r_block else str(self.x_block)
        stages = f"-{self.stages}stages" if self.stages > 1 else ""
        return f"{block}-{self.warps}warps{stages}"

    @property
    def a_thread(self) -> int:
        """Elements of the tile that a thread holds, at least 1."""
        return max(self.x_block * max(self.r_block, 1) // (WARP * self.warps), 1)


def choose(part: Part, limits: Limits, streams: bool = False) -> Tile:
    """The tile of a kernel, by the model above. `streams`: it reads a buffer that L2 should not
    keep, which loads that are in flight over several steps cannot say."""
    nest = part.nest
    kept = tuple(i for i, axis in enumerate(nest.axes) if not axis.reduced)
    row = tuple(i for i, axis in enumerate(nest.axes) if axis.reduced)
    rows = limits.number(nest.size(kept))
    if row:
        return _of_rows(part, limits, kept, row, rows, streams)
    second = _second(nest, kept)
    if second is not None and limits.number(nest.axes[second].size) >= 16:
        first = tuple(axis for axis in kept if axis != second)
        across = limits.number(nest.size(first)), limits.number(nest.axes[second].size)
        wide = narrowest(nest) < 4 and across[0] * across[1] >= 4 * limits.processors << 14
        return Tile(first, (second,), 128, 128, 16) if wide else Tile(first, (second,), 64, 64, 8)
    width = VECTOR // narrowest(nest)
    block = WARP * 4 * min(max(width, 4), 8)
    while block > WARP * 4 and rows < block * limits.processors:
        block //= 2
    return Tile(kept, (), block, 0, 4)


def _of_rows(
    part: Part,
    limits: Limits,
    kept: tuple[int, ...],
    row: tuple[int, ...],
    rows: int,
    streams: bool,
) -> Tile:
    nest = part.nest
    size = nest.size(row)
    length = limits.number(size)
    narrow = narrowest(nest) < 4
    across = bool(kept) and max(kept) > max(row)
    if part.form == "partial":
        x, step = positions_across(rows) if across else 1, part_step(rows, across)
        if across and narrow and not _moments(nest) and rows >= 8 * SUMMED:
            x, step = SUMMED, 2 * step
        if across and _moments(nest):
            # 64 x 32 float32 by columns: 54.5 µs with 2 warps, 56 with 4; a batch norm's, which
            # does not stream, 63 with 3 stages and 67 with one (bfloat16, all its kernels)
            return Tile(kept, row, x, step, 2, looped=True, stages=1 if streams else RIDING_STAGES)
        return Tile(kept, row, x, step, 4 if across else 8, looped=True)
    whole = limits.holds(size, across)
    if across and not whole:
        few = power_of_two(max(rows // (2 * limits.processors), 1))
        x = min(max(few, 8), 32, power_of_two(max(rows, 1)))
        return Tile(kept, row, x, min(power_of_two(length), 2048 // x), 8, looped=True)
    if whole:
        return _whole_rows(part, limits, kept, row, rows, narrow, across)
    # two programs' rows for each processor have to stay in L2 until they are read again
    both = 2 * limits.processors * length * narrowest(nest)
    crowded = both > limits.l2_bytes // 2 and not narrow
    if _moments(nest):
        block = _with_few_idle(length, 2 * MOMENTS if crowded else MOMENTS)
        warps = min(max(block // (256 if crowded else 512), 1), 32)
        return Tile(kept, row, 1, block, warps, looped=True)
    block = power_of_two(max(length, 128))
    if _online(nest):
        # reading a row of 16-bit elements again, from L2, takes less than waiting at each step: 231
        # µs against 297 for 8192 rows of 32000 bfloat16 on an H100
        block = min(STEPS, block)
        warps = min(max(block // 1024, 1), 16)
        if narrow and _checks(nest) and block == STEPS:
            # the check of an index takes registers: 199 µs, 220 with twice the elements a thread
            block //= 2
        return Tile(kept, row, 1, block, warps, looped=True, online=not narrow)
    most = 2 * STEPS if crowded and length > 2 * STEPS else STEPS
    block = min(most, block)
    return Tile(kept, row, 1, block, min(max(block // 1024, 1), 32), looped=True)


def _whole_rows(
    part: Part,
    limits: Limits,
    kept: tuple[int, ...],
    row: tuple[int, ...],
    rows: int,
    narrow: bool,
    across: bool,
) -> Tile:
    """A program holds its rows in registers."""
    block = power_of_two(limits.number(part.nest.size(row)))
    scans = any(isinstance(s, ScanAlong) for s in part.nest.statements)
    if scans and block >= SCANNED:
        return Tile(kept, row, 1, block, 4 if block <= 4 * SCANNED else 16)
    x = 2 if scans and rows > 1 else 1
    while x * block < STEP and rows // (2 * x) >= 4 * limits.processors:
        x *= 2
    if across:
        x = max(x, min(32, power_of_two(rows)))
    warps = min(max(x * block // (WARP * PER_THREAD), 1), 8 if narrow else 16)
    if part.form != "riding":
        few = 4 if x * block >= STEP else 1
        return Tile(kept, row, x, block, max(warps, few))
    if block > 512:  # sums over rows take registers too, and each stage is unrolled
        warps *= 2
    return Tile(kept, row, x, block, max(warps, 2), stages=RIDING_STAGES)


def candidates(part: Part, tile: Tile) -> list[Tile]:
    """Other tiles that a kernel may have: half and twice of each number, alone and in pairs."""
    found: dict[Tile, None] = {}
    two = not tile.looped and part.form != "riding"
    whole = bool(tile.r_block) and two and any(axis.reduced for axis in part.nest.axes)
    for x in (0.5, 1, 2):
        for r in (1,) if whole or part.form == "riding" or not tile.r_block else (0.5, 1, 2):
            for warps in (0.5, 1, 2):
                for stages in (1,) if two else dict.fromkeys((tile.stages, 1, 3)):
                    other = replace(
                        tile,
                        x_block=int(tile.x_block * x),
                        r_block=int(tile.r_block * r),
                        warps=int(tile.warps * warps),
                        stages=stages,
                    )
                    changes = (x != 1) + (r != 1) + (warps != 1) + (stages != tile.stages)
                    if changes in (1, 2) and _is_possible(other, tile):
                        found[other] = None
    return list(found)


def _is_possible(tile: Tile, default: Tile) -> bool:
    if tile.x_block < 1 or (default.r_block and tile.r_block < 16):
        return False
    return 1 <= tile.warps <= 32 and tile.a_thread <= MOST_A_THREAD


def _moments(nest: Nest) -> bool:
    return any(isinstance(s, Reduction) and s.op == "deviations" for s in nest.statements)


def _checks(nest: Nest) -> bool:
    """Whether a read checks an index."""
    reads = reads_in(nest.statements)
    return any(isinstance(r, ReadIndexed) and any(term.checked for term in r.terms) for r in reads)


def _online(nest: Nest) -> bool:
    """Whether there is one pass over each row, with sums relative to the greatest element so far:
    each step waits for that, so that more threads with less work are faster."""
    along = {i for i, axis in enumerate(nest.axes) if axis.reduced}
    return any(isinstance(s, Reduction) and s.op == "max" for s in nest.statements) and not any(
        isinstance(s, Write) and along & set(s.axes) for s in nest.statements
    )


def bytes_a_step(part: Part, tile: Tile) -> int:
    """Bytes of memory that a program reads in one step of its tile."""
    found = 0
    for read in dict.fromkeys(reads_in(part.nest.statements)):
        if isinstance(read, Read):
            moves = {i for i, stride in enumerate(read.address.strides) if stride != 0}
            size = BYTES[read.dtype]
            size *= tile.x_block if moves & set(tile.x) else 1
            found += size * (tile.r_block if tile.r_block and moves & set(tile.r) else 1)
    return found


def _with_few_idle(length: int, most: int) -> int:
    """The largest block of at most `most` whose steps over a row leave at most a seventh of their
    elements idle: 25,088 elements take 7 steps of 4,096, or 4 of 8,192 with a quarter idle."""
    block = min(most, power_of_two(max(length, 128)))
    while block > MOMENTS // 4 and 6 * -(-length // block) * block > 7 * length:
        block //= 2
    return block


def narrowest(nest: Nest) -> int:
    """Bytes of the narrowest dtype that a nest reads or writes."""
    sizes = [BYTES[part.dtype] for part in reads_in(nest.statements)]
    sizes += [BYTES[s.dtype] for s in nest.statements if isinstance(s, Write)]
    return min(sizes, default=4)


def _second(nest: Nest, kept: tuple[int, ...]) -> int | None:
    """The axis along which some accesses have neighbours while others have them along the last."""
    if len(kept) < 2:
        return None
    last, found = kept[-1], []
    for statement in nest.statements:
        addresses = [p.address for p in expressions(statement) if isinstance(p, Read)]
        if isinstance(statement, Write):
            addresses.append(statement.address)
        for address in addresses:
            if address.then or address.strides[last] in (0, 1):
                continue
            found += [axis for axis in kept[:-1] if address.strides[axis] == 1]
    return max(sorted(set(found)), key=found.count) if found else None
