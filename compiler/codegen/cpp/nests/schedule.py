"""The schedule of a nest: which axis is on the lanes, which are rows, what a thread takes.

    for unit in units:            rows, and chunks of the lane axis; threads take ranges of units
        for outer kept axes:
            for each pass:
                for inner axes:   reduced ones, and kept ones that must run in order
                    for lanes:    the lane axis, several vectors per step

The lane axis is either a row's own (reductions end in a sum across the lanes) or a kept axis with
unit stride (each lane has its own result, in a row of accumulators). The estimated cost decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcw.compiler.codegen.choices import NestChooser
from tcw.compiler.codegen.cpp.isa import Isa
from tcw.compiler.codegen.cpp.nests import questions
from tcw.compiler.codegen.cpp.nests.lane_cost import eviction_cost, lane_cost
from tcw.compiler.codegen.cpp.nests.registers import itemsizes
from tcw.compiler.codegen.cpp.nests.tiling import (
    BLOCK_BYTES,
    block,
    share_a_set,
    square,
    tile_axis,
    tiled_reads,
    turned_writes,
    used_at_once,
    written_axis,
)
from tcw.compiler.codegen.cpp.nests.turned import (
    BAND_BYTES,
    joined,
    rows_of_tiles,
    turned,
    turned_axis,
    turned_columns,
)
from tcw.compiler.codegen.nests.facts import Facts, estimate
from tcw.compiler.loops.expressions import Op, Read, ReadIndexed, walk
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import Let, Reduction, ScanAlong, Write, expressions, reads_in
from tcw.compiler.loops.operators import OPERATORS
from tcw.compiler.loops.sizes import Size, product

CHUNK = 4096
"""Elements of the lane axis per unit of a pointwise nest."""
COLUMNS = 64
"""Minimum number of columns per unit of a column reduction: four cache lines of each row."""
SCATTERED = 256
"""The same for rows that are added to others: a longer run of each row, whose place is unrelated
to the last one's."""
STEPS = 4
"""Vectors in one step of a cheap pass."""
UNITS = 64
"""Number of units that keeps threads busy."""
CHECKED = 1.5
"""Cost of wrapping an index and comparing it with a size, in scalar code."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The loop structure of one nest. Axes are identified by their place in `Nest.axes`."""

    lane: int | None
    """The axis on the lanes; None for scalar code without a lane loop."""
    lanes: int
    outer: tuple[int, ...]
    """Kept axes around a row, outermost first."""
    units: int
    """The number of leading `outer` axes that together form the units."""
    chunk: Size | None
    """Elements of the lane axis in one unit; None if a unit has all of them."""
    inner: tuple[int, ...]
    """The axes of a row, except the lane axis."""
    tile: int | None = None
    """An axis along which some reads, or all writes, have unit stride: square tiles of it and the
    lane axis are loaded or stored along it, and transposed in registers."""
    band: int = 1
    """Rows of the tiles of one unit: all there are, if `tile` is one of a row's axes."""
    blocks: bool = False
    """Transpose the tiles of a whole unit into a block before traversing its rows; or those of its
    writes after it. Otherwise each tile is transposed just before use."""
    writes: bool = False
    """The blocks hold all that a unit writes, and nothing that it reads."""
    joined: tuple[int, ...] = ()
    """The last of the `outer` axes, if the tiles cover all their positions, too."""

    @property
    def banded(self) -> int | None:
        """The tile axis if units are bands of it; None if there is none, or it is a row's own."""
        return None if self.tile in self.inner else self.tile

    def runs(self) -> tuple[int, ...]:
        """The axes that are the same in a run of units, which differ in their last axis alone."""
        whole = self.chunk is None and self.banded is None
        return self.outer[: self.units - 1] if whole and self.units > 1 else ()

    def row(self) -> tuple[int, ...]:
        """All axes of a row."""
        return self.inner if self.lane is None else (*self.inner, self.lane)


def sequential(facts: Facts) -> frozenset[int]:
    """Axes that must run in order: reduced, scanned, or with colliding writes."""
    found = set(facts.reduced)
    for statement in facts.nest.statements:
        if isinstance(statement, ScanAlong):
            found.add(statement.axis)
        elif isinstance(statement, Write) and (statement.ordered or statement.mode != "set"):
            found |= colliding(facts, statement)
    return frozenset(found)


def colliding(facts: Facts, write: Write) -> frozenset[int]:
    """Axes of a write whose positions may hit the same element.

    An axis cannot collide if its index can be recovered from the address: every other term of the
    address either stays below the axis's stride or is a multiple of the range that it spans.
    """
    axes = facts.domain(write)
    if not write.terms and not write.ordered:
        return frozenset()
    if write.address.then:
        return axes
    parts: list[tuple[int | None, Size, Size]] = [
        (axis, write.address.strides[axis], facts.nest.axes[axis].size)
        for axis in axes
        if write.address.strides[axis] != 0
    ]
    parts += [(None, term.stride, term.size) for term in write.terms]
    return axes - {
        axis for axis, stride, size in parts if axis is not None and _separate(axis, parts)
    }


def _separate(axis: int, parts: list[tuple[int | None, Size, Size]]) -> bool:
    stride, size = next((stride, size) for own, stride, size in parts if own == axis)
    if not isinstance(stride, int) or not isinstance(size, int) or stride <= 0:
        return False
    below = 0
    for own, other, extent in parts:
        if own == axis:
            continue
        if not isinstance(other, int) or other < 0:
            return False
        if isinstance(extent, int) and other < stride:
            below += other * (extent - 1)
        elif other % (stride * size):
            return False
    return below < stride


def schedule(facts: Facts, isa: Isa, choose: NestChooser | None = None) -> Schedule:
    """The cheapest loop order, unless `choose` overrides it."""
    ordered = sequential(facts)
    lane, lanes = _lane(facts, isa, ordered, choose)
    sizes = [axis.size for axis in facts.nest.axes]
    inner = tuple(axis for axis in range(len(sizes)) if axis in ordered and axis != lane)
    outer = tuple(axis for axis in range(len(sizes)) if axis not in ordered and axis != lane)
    chunk: Size | None = None
    tile = None if inner or lane is None else tile_axis(facts, lane, lanes, outer, choose)
    if tile is not None:
        assert lane is not None
        outer = tuple(axis for axis in outer if axis != tile)
        units = _units(sizes, outer, choose)
        if used_at_once(facts, lane, tile, lanes):
            band, width = square(facts, lane, tile, lanes)
            return Schedule(lane, lanes, outer, units, width, inner, tile, band)
        band, width = block(facts, lane, tile, lanes)
        return Schedule(lane, lanes, outer, units, width, inner, tile, band, blocks=True)
    if lane is not None and tile is None:
        tile = turned_axis(facts, lane, lanes, ordered)
        if choose is not None and tile is not None:
            tile = questions.tile(choose, tile, [tile], lanes)
        if tile is not None:
            beside = joined(facts, lane, tile, ordered)
            outer = tuple(axis for axis in outer if axis != tile and axis not in beside)
            units = _units(sizes, outer, choose)
            rows = rows_of_tiles(facts, lane, tile, ordered)
            band = estimate(rows) if tile in inner else lanes
            chunk = None
            if lane not in ordered:
                far = turned_columns(facts, lane, lanes, tile, ordered)
                near = far * BLOCK_BYTES // BAND_BYTES // COLUMNS * COLUMNS
                chunk = min(max(near, COLUMNS), far)
                chunk = chunk if estimate(sizes[lane]) > chunk else None
            outer = (*outer, *beside)
            return Schedule(
                lane, lanes, outer, units, chunk, inner, tile, band, blocks=True, joined=beside
            )
    if not inner and lane is not None and lane not in ordered:
        tile = written_axis(facts, lane, lanes, outer, choose)
        if tile is not None:
            outer = tuple(axis for axis in outer if axis != tile)
            units = _units(sizes, outer, choose)
            band, width = block(facts, lane, tile, lanes)
            return Schedule(lane, lanes, outer, units, width, inner, tile, band, True, writes=True)
    rows = product(sizes[axis] for axis in outer)
    if lane is not None and lane not in ordered:
        written = (s.address for s in facts.nest.statements if isinstance(s, Write))
        outside = any(
            max(facts.moves(address) & set(outer), default=-1) > lane for address in written
        )
        columns = SCATTERED if inner and not facts.reduced else COLUMNS
        chunk = _chunk(sizes[lane], rows, [sizes[axis] for axis in inner], columns, outside)
        chunk = _returned_to(facts, lane, lanes, inner, chunk or sizes[lane]) or chunk
        if choose is not None:
            chunk = questions.block(choose, chunk, sizes[lane])
    return Schedule(lane, lanes, outer, _units(sizes, outer, choose), chunk, inner)


def _chunk(size: Size, rows: Size, inner: list[Size], columns: int, outside: bool) -> Size | None:
    """How much of a kept lane axis a unit takes; None for all of it. `columns`: the minimum.

    `outside`: in the memory that is written, rows lie within the lane axis, so threads divide that
    axis rather than the rows.
    """
    width = CHUNK
    while outside and width > columns and width * UNITS > 4 * estimate(size):
        width //= 2
    if inner:
        depth = 1
        for extent in inner:
            depth *= max(estimate(extent), 1)
        width = columns
        while width < 1024 and width * depth < 1 << 14:
            width *= 2
    if isinstance(size, int):
        if size <= width:
            return None
        if not (inner or outside) and (
            size <= 2 * CHUNK or (estimate(rows) >= UNITS and size <= 1 << 16)
        ):
            return None
    return width


def _returned_to(
    facts: Facts, lane: int, lanes: int, inner: tuple[int, ...], width: Size
) -> Size | None:
    """A narrower chunk, so that the lines written at one position of an inner axis stay in L1 until
    the next position writes beside them; None if they do with `width`."""
    if not isinstance(width, int):
        return None
    left = width
    for statement in facts.nest.statements:
        if isinstance(statement, Write) and not statement.address.then:
            strides, dtype = statement.address.strides, statement.dtype
            if any(strides[axis] in (1, -1) for axis in inner):
                while left > lanes and share_a_set(strides[lane], dtype, left):
                    left = max(lanes, left // 2)
    return left if left < width else None


def _units(sizes: list[Size], outer: tuple[int, ...], choose: NestChooser | None) -> int:
    """The number of outer axes that become units: enough to keep threads busy."""
    count = _enough_units(sizes, outer)
    if choose is not None:
        return questions.units(choose, count, [sizes[axis] for axis in outer])
    return count


def _enough_units(sizes: list[Size], outer: tuple[int, ...]) -> int:
    total = 1
    for place, axis in enumerate(outer):
        if total >= UNITS:
            return place
        size = sizes[axis]
        total *= size if isinstance(size, int) else 2
    return len(outer)


def _lane(
    facts: Facts, isa: Isa, ordered: frozenset[int], choose: NestChooser | None
) -> tuple[int | None, int]:
    costs: dict[int, float] = {}
    best: tuple[float, int, int] | None = None
    scalar, scatters = _scalar_cost(facts), _scatters(facts)
    bare = [axis.size for axis in facts.nest.axes]
    for axis in _candidates(facts, ordered):
        lanes = isa.lanes(itemsizes(facts, axis))
        size = bare[axis]
        if isinstance(size, int) and size < 2:
            continue
        blocks = _turned(facts, axis, lanes, ordered)
        cost = lane_cost(facts, axis, lanes, bare, axis in ordered, blocks, isa.gathers)
        cost += eviction_cost(facts, axis, lanes, blocks, scatters=scatters)
        costs[axis] = cost
        if best is None or (cost, -axis) < best[:2]:
            best = (cost, -axis, lanes)
    if best is None:
        return None, 1
    lane, lanes = -best[1], best[2]
    if choose is not None:
        lane = questions.lane_axis(choose, facts, lane, costs)
        sizes = itemsizes(facts, lane)
        lanes = questions.vector(choose, isa, isa.lanes(sizes), sizes, costs[lane], scalar)
    elif scalar is not None and scalar < costs[lane]:
        lanes = 1
    if lanes == 1:
        return (lane if _runs_along(facts, lane, ordered) else None), 1
    return lane, lanes


def _turned(
    facts: Facts, lane: int, lanes: int, ordered: frozenset[int]
) -> dict[Read | Write, Size]:
    """What is transposed in blocks if this axis is on the lanes, with the rows of its tiles: reads
    of rows that reduce along it, or writes if there are fewer of them than reads with tiles the
    other way round."""
    band = turned_axis(facts, lane, lanes, ordered)
    if band is not None:
        rows = rows_of_tiles(facts, lane, band, ordered)
        return dict.fromkeys(turned(facts, lane, band, ordered), rows)
    outer = tuple(axis for axis in range(len(facts.nest.axes)) if axis != lane)
    if ordered or tile_axis(facts, lane, lanes, outer) is not None:
        return {}
    band = written_axis(facts, lane, lanes, outer)
    if band is None:
        return {}
    writes = list(turned_writes(facts, lane, band))
    fewer = len(writes) < len(list(tiled_reads(facts, band, lane)))
    return dict.fromkeys(writes, facts.nest.axes[band].size) if fewer else {}


def _runs_along(facts: Facts, lane: int, ordered: frozenset[int]) -> bool:
    """Whether more of what a nest touches is contiguous along the lanes than along an ordered axis:
    scalar code then walks along the former in its innermost loop, unless its writes evict each
    other there."""

    def contiguous(axis: int) -> int:
        writes = (s for s in facts.nest.statements if isinstance(s, Write))
        parts = (*reads_in(facts.nest.statements), *writes)
        return sum(part.address.strides[axis] == 1 for part in parts if not part.address.then)

    for statement in facts.nest.statements:
        if isinstance(statement, Write) and not statement.address.then:
            step, count = statement.address.strides[lane], estimate(facts.nest.axes[lane].size)
            if share_a_set(step, statement.dtype, min(count, 16)):
                return False
    return contiguous(lane) > max((contiguous(axis) for axis in ordered), default=0)


def _scalar_cost(facts: Facts) -> float | None:
    """Instructions per 16 elements of a nest that only scatters or gathers, in scalar code; None
    for others.

    If everything it touches is strided on the lanes, vectors save nothing: each is taken apart, and
    the axes whose writes collide walk far through memory, instead of along it. A core loads two
    elements in the time in which it stores one. Vectors of indices that choose what is read are
    checked at once.
    """
    total = 0.0
    gathers = False
    for statement in facts.nest.statements:
        if not isinstance(statement, (Let, Write)):
            return None
        for part in expressions(statement):
            if isinstance(part, (Read, ReadIndexed)):
                total += 0.5
                gathers = gathers or _by_data(part)
                if isinstance(part, ReadIndexed):
                    total += CHECKED * sum(term.checked for term in part.terms)
            elif isinstance(part, Op):
                total += OPERATORS[part.name].weight
        if isinstance(statement, Write):
            total += 1 if statement.mode == "set" else 1.5
    return 16 * total if gathers or _scatters(facts) else None


def _by_data(read: Read | ReadIndexed) -> bool:
    """Whether indices in memory determine what is read."""
    return isinstance(read, ReadIndexed) and any(
        isinstance(part, (Read, ReadIndexed)) for term in read.terms for part in walk(term.index)
    )


def _scatters(facts: Facts) -> bool:
    writes = (s for s in facts.nest.statements if isinstance(s, Write))
    return any(colliding(facts, write) for write in writes)


def _candidates(facts: Facts, ordered: frozenset[int]) -> Iterator[int]:
    for axis in range(len(facts.nest.axes)):
        if axis in ordered and not _may_lie_on_lanes(facts, axis):
            continue
        yield axis


def _may_lie_on_lanes(facts: Facts, axis: int) -> bool:
    """Whether a reduced or scanned axis may be on the lanes: not if writes collide on it, nor if an
    argmax reduces it along with a later axis."""
    for statement in facts.nest.statements:
        if isinstance(statement, Write) and axis in colliding(facts, statement):
            return False
        if (
            isinstance(statement, Reduction)
            and statement.op in ARG
            and axis in statement.over
            and axis != max(statement.over)
        ):
            return False
    return True
