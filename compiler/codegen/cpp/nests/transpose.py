"""Square tiles: reads along an axis other than the lanes, transposed in registers.

Either each tile is used right after its transpose (`tiles`):

    for band of rows:                       as many rows as there are lanes
        for columns, one vector per step:
            load the tile along its rows' axis, transpose it: one register per row of the band
            for each row of the band:       use its register of the tile; all else is unchanged

A large nest is first split into squares of 128 x 128 (`schedule.SQUARE`), so that several lines of
each page are read while it is open. Short rows are processed in groups of 128, column by column.
The remainder of a tile at the end of the rows or columns goes through an array of one tile.

Or all tiles of a block are transposed first (`fill_blocks`, chosen by `tiling.used_at_once`):

    for band of rows, chunk of columns:     64 x 128 float32: 32 KB, which stay in L1
        for each tile: load it along its rows' axis, transpose it, store it in the block
        for each row of the band:           traverse it as usual, 128 elements at a time

That is for nests with riders, whose sums stay in registers from row to row, and for tiles of 8 or 4
float32 with rows 4096 bytes apart. Each such tile leaves part of each line unused, and the lines of
its rows compete for the 8 or 12 ways of one set. Blocks of rows that are reduced or scanned
(`turned.py`) also have the other axes of a row, or all positions of one of these.

Where all writes are strided along the lanes, and no read has tiles, blocks are used the other way
round (`drain_blocks`): a band's rows are written to blocks, whose tiles are then transposed into
memory.

Each row of a tile is a separate variable: an array of registers indexed in a loop would be on the
stack, which takes up to twice as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcw.compiler.codegen.cpp.nests.addresses import step_text
from tcw.compiler.codegen.cpp.nests.code import Code, Scope
from tcw.compiler.codegen.cpp.nests.passes import Pass
from tcw.compiler.codegen.cpp.nests.scratch import Array, RowArrays, Scratch, padded
from tcw.compiler.codegen.cpp.nests.tiling import short_rows, tiled_reads, turned_writes
from tcw.compiler.codegen.cpp.nests.turned import turned_reads, turned_results, within
from tcw.compiler.codegen.cpp.nests.units import Units
from tcw.compiler.codegen.cpp.nests.vector_values import Values
from tcw.compiler.codegen.nests.facts import estimate
from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.expressions import Read
from tcw.compiler.loops.nest import Write
from tcw.compiler.loops.sizes import Size, product

Body = Callable[[Pass, Scope, list, int], None]  # type: ignore[type-arg]


ALIASED = 256
"""Rows of a block whose length is a multiple of this many elements share sets of L1."""


def tiles(
    values: Values, units: Units, arrays: RowArrays, scope: Scope, walk: Pass, body: Body
) -> None:
    """Add the loops over one band, or over one chunk of it, to the scope of its unit."""
    tile = _Tile(values, units, arrays, scope)
    count = tile.count
    whole = _whole(tile, walk, body)
    if units.whole_tiles():
        inner = whole
    else:
        inner = Code()
        inner.enclose(f"if ({tile.rows} >= {count} && {tile.columns} >= {count})", whole)
        inner.enclose("else", _edge(tile, arrays.scratch, walk, body))
    column, first = tile.column, tile.first
    loops = [f"for (long {column} = 0; {column} < {tile.bound}; {column} += {count})"]
    if arrays.schedule.band != count:
        start, end = f"long {first} = {units.band}", f"{first} < {units.band}_end"
        loops.append(f"for ({start}; {end}; {first} += {count})")
    for header in reversed(loops) if short_rows(values.facts, tile.lane, tile.axis) else loops:
        outer = Code()
        outer.loop(header, inner)
        inner = outer
    scope.code.extend(inner)


class _Tile:
    """Names and scopes for one tile."""

    def __init__(self, values: Values, units: Units, arrays: RowArrays, scope: Scope) -> None:
        schedule = arrays.schedule
        assert schedule.tile is not None
        assert schedule.lane is not None
        self.values, self.lanes, self.count = values, arrays.vector, schedule.lanes
        self.axis, self.lane = schedule.tile, schedule.lane
        self.row, self.column = units.axis_names[self.axis], units.lane_name
        self.bound = units.lane_bound()
        self.first = units.band
        if schedule.band != self.count:
            self.first = values.names.exactly("top")
        self.rows = f"{units.band}_end - {self.first}"
        self.columns = f"{self.bound} - {self.column}"
        self.scope = scope
        self.reads = list(tiled_reads(values.facts, self.lane, self.axis))

    def corner(self) -> Scope:
        """The scope with the indices of a tile's first element."""
        own = {self.axis: (self.first, 1), self.lane: (self.column, 1)}
        return Scope(self.scope, self.scope.lanes, own)

    def row_of_lanes(self, count: str | None = None) -> tuple[Scope, Scope]:
        """The scopes of a row of a tile, and of its elements on the lanes."""
        row = Scope(self.scope, self.scope.lanes, {self.axis: (self.row, 1)})
        own = {self.lane: (self.column, 1)}
        return row, Scope(row, self.lanes, own, is_lane=True, count=count)

    def source(self, read: Read, corner: Scope) -> tuple[str, str]:
        """The address of a read's tile, and the distance between its rows."""
        pointer = self.values.pointer(self.values.bases[read.buffer], read.address, corner)
        return pointer, step_text(read.address.strides[self.lane])


def _whole(tile: _Tile, walk: Pass, body: Body) -> Code:
    """A complete tile in registers, one per row."""
    corner = tile.corner()
    row, vector = tile.row_of_lanes()
    parameters = [f"long {tile.row}"]
    arguments: list[list[str]] = []
    for read in tile.reads:
        wanted = f"{base_name(read.buffer)}_tile"
        numbers = [str(k) for k in range(tile.count)]
        stem = tile.values.names.family(wanted, numbers)
        kind = tile.lanes.type(compute_dtype(read.dtype))
        registers = [f"{stem}_{k}" for k in numbers]
        pointer, stride = tile.source(read, corner)
        corner.code.add(f"{kind} {', '.join(registers)};")
        dtype = tile.values.bases[read.buffer].dtype
        corner.code.add(tile.lanes.load_transposed(dtype, pointer, stride, registers))
        parameters.append(f"{kind} {stem}")
        arguments.append(registers)
        vector.memo[read] = stem
    body(walk, vector, [], 0)
    row.code.extend(vector.code)
    header = f"const auto step = [&]({', '.join(parameters)}) __attribute__((always_inline))"
    corner.code.enclose(header, row.code, "};")
    for place, rows in enumerate(zip(*arguments, strict=True)):
        at = tile.first if place == 0 else f"{tile.first} + {place}"
        corner.code.add(f"step({at}, {', '.join(rows)});")
    return corner.code


def _edge(tile: _Tile, scratch: Scratch, walk: Pass, body: Body) -> Code:
    """A partial tile at the end of the rows, of the columns or of both, in memory."""
    corner = tile.corner()
    row, vector = tile.row_of_lanes("count")
    corner.code.add(
        f"const long count = {tile.columns} < {tile.count} ? {tile.columns} : {tile.count};"
    )
    end = tile.values.name(("tile end", tile.first), f"{tile.row}_end")
    corner.code.add(
        f"const long {end} = {tile.rows} < {tile.count} ? {tile.first} + ({tile.rows})"
        f" : {tile.first} + {tile.count};"
    )
    for read in tile.reads:
        dtype, wide = tile.values.bases[read.buffer].dtype, compute_dtype(read.dtype)
        name = tile.values.names.new(f"{base_name(read.buffer)}_edge")
        scratch.declare(name, wide, tile.count * tile.count)
        pointer, stride = tile.source(read, corner)
        left = (f"{end} - {tile.first}", "count")
        corner.code.add(
            tile.lanes.transpose_edge(dtype, pointer, stride, name, str(tile.count), *left)
        )
        at = f"{name} + ({tile.row} - {tile.first}) * {tile.count}"
        vector.memo[read] = tile.lanes.load(wide, at)
    body(walk, vector, [], 0)
    row.code.extend(vector.code)
    header = f"for (long {tile.row} = {tile.first}; {tile.row} < {end}; {tile.row}++)"
    corner.code.loop(header, row.code)
    return corner.code


def fill_blocks(values: Values, units: Units, arrays: RowArrays, scope: Scope) -> None:
    """Add the loops that transpose a unit's tiles into blocks, which later reads use.

    The scope must have the start of the band and of the chunk. Writes that are turned get blocks,
    too, which `drain_blocks` transposes.
    """
    block, schedule = _Block(values, units, arrays), arrays.schedule
    ordered = frozenset(schedule.inner)
    together: dict[tuple[int, ...], list[Read]] = {}
    for read in [] if schedule.writes else turned_reads(values.facts, block.lane, block.axis):
        axes = within(values.facts, read, block.lane, block.axis, ordered)
        together.setdefault(tuple(axes), []).append(read)
    for rows, reads in together.items():
        _fill(values, units, block, rows, reads, scope)
    writes = list(turned_writes(values.facts, block.lane, block.axis)) if schedule.writes else []
    if not schedule.writes and schedule.banded is None:
        writes = turned_results(values.facts, block.lane, block.axis, ordered)
    for write in writes:
        array = block.array(base_name(write.buffer), write)
        values.written[write] = (array.base, array.address)
        stored = Read(write.buffer, write.address, write.dtype)
        values.blocks[stored] = values.written[write]


def _fill(
    values: Values,
    units: Units,
    block: _Block,
    axes: tuple[int, ...],
    reads: Sequence[Read],
    scope: Scope,
) -> None:
    """The loops for reads whose blocks have these axes of a row besides those of the tiles."""
    opened = units.axis_loops(axes, scope)
    inside, tile = opened[-1][0] if opened else scope, Code()
    for read in reads:
        base, stride = values.bases[read.buffer], step_text(read.address.strides[block.lane])
        array = block.array(base_name(read.buffer), read, axes)
        pointer = f"{values.pointer(base, read.address, inside)} + {block.column} * {stride}"
        pointer += f" + {block.row}"
        pitch = step_text(array.address.strides[block.axis])
        start = values.pointer(array.base, array.address, inside)
        into = f"{start} + {block.row} * {pitch} + {block.column}"
        whole = block.lanes.transpose_tile(base.dtype, pointer, stride, into, pitch)
        edge = block.lanes.transpose_edge(base.dtype, pointer, stride, into, pitch, *block.left)
        block.add(tile, whole, edge)
        values.blocks[read] = (array.base, array.address)
    block.loops(tile, inside)
    for child, header in reversed(opened):
        assert child.parent is not None
        child.parent.code.loop(header, child.code)


def drain_blocks(values: Values, units: Units, arrays: RowArrays, scope: Scope) -> None:
    """Add the loops that transpose a unit's blocks of what it writes into memory."""
    block, lanes, tile = _Block(values, units, arrays), arrays.vector, Code()
    for write, (array, address) in values.written.items():
        base, stride = values.bases[write.buffer], step_text(write.address.strides[block.lane])
        pitch = step_text(address.strides[block.axis])
        pointer = f"{array.name} + {block.row} * {pitch} + {block.column}"
        into = f"{values.pointer(base, write.address, scope)} + {block.column} * {stride}"
        into += f" + {block.row}"
        whole = lanes.transpose_bits(base.dtype, pointer, pitch, into, stride)
        edge = lanes.transpose_bits_edge(base.dtype, pointer, pitch, into, stride, *block.left)
        block.add(tile, whole, edge)
    if tile.lines:
        block.loops(tile, scope)


class _Block:
    """Names and sizes of the blocks of a unit."""

    def __init__(self, values: Values, units: Units, arrays: RowArrays) -> None:
        schedule = arrays.schedule
        axis, lane = schedule.tile, schedule.lane
        assert axis is not None
        assert lane is not None
        self.axis, self.lane, self.count = axis, lane, schedule.lanes
        self.lanes = arrays.vector
        self.row, self.column = units.axis_names[axis], units.lane_name
        self.rows, self.bound = units.band_rows(), units.lane_bound()
        self.left = (f"{self.rows} - {self.row}", f"{self.bound} - {self.column}")
        width: Size | None = schedule.chunk
        if width is None:
            width = padded(units.lane_size(), self.count)
        if isinstance(width, int) and width % ALIASED == 0:
            width += self.count
        self.facts = values.facts
        self.width = (lane, width)
        axes = (*schedule.joined, axis)
        sizes = [values.facts.nest.axes[a].size for a in axes]
        whole, first = product(sizes), padded(schedule.band, self.count)
        if schedule.joined:
            assert isinstance(first, int)
            first = -(-first // estimate(product(sizes[1:])))
        self.band = list(zip(axes, (first, *sizes[1:]), strict=True))
        self.even = all(
            isinstance(size, int) and size % self.count == 0 for size in (whole, units.lane_size())
        )
        self.scratch = arrays.scratch

    def array(self, wanted: str, access: Read | Write, axes: Sequence[int] = ()) -> Array:
        """The block of an access, with these axes of a row besides those of the tiles."""
        rows = [(axis, self.facts.nest.axes[axis].size) for axis in axes]
        return self.scratch.array(
            f"{wanted}_block",
            access.dtype,
            [*self.band, *rows, self.width],
            len(access.address.strides),
            self.count,
            narrow=isinstance(access, Write),
        )

    def add(self, tile: Code, whole: str, edge: str) -> None:
        """A tile of `count` rows and columns; `edge` for one that has fewer."""
        if self.even:
            tile.add(whole)
            return
        tile.add(f"if ({self.left[0]} >= {self.count} && {self.left[1]} >= {self.count})")
        tile.add(f"    {whole}")
        tile.add("else")
        tile.add(f"    {edge}")

    def loops(self, tile: Code, scope: Scope) -> None:
        row, column, count = self.row, self.column, self.count
        columns = Code()
        columns.loop(f"for (long {row} = 0; {row} < {self.rows}; {row} += {count})", tile)
        header = f"for (long {column} = 0; {column} < {self.bound}; {column} += {count})"
        scope.code.loop(header, columns)
