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

That is for tiles of 8 or 4 float32 with rows 4096 bytes apart. Each such tile leaves part of each
line unused, and the lines of its rows compete for the 8 or 12 ways of one set.

Each row of a tile is a separate variable: an array of registers indexed in a loop would be on the
stack, which takes up to twice as long.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.codegen.cpp.nests.addresses import step_text
from compiler.codegen.cpp.nests.code import Code, Scope
from compiler.codegen.cpp.nests.passes import Pass
from compiler.codegen.cpp.nests.schedule import Schedule
from compiler.codegen.cpp.nests.scratch import Scratch, padded
from compiler.codegen.cpp.nests.tiling import short_rows, tiled_reads
from compiler.codegen.cpp.nests.turned import turned_reads
from compiler.codegen.cpp.nests.units import Units
from compiler.codegen.cpp.nests.values import Values
from compiler.codegen.cpp.vocabulary import Lanes
from compiler.codegen.nests.names import base_name
from compiler.loops.dtypes import compute_dtype
from compiler.loops.expressions import Read
from compiler.loops.sizes import Size

Body = Callable[[Pass, Scope, list, int], None]  # type: ignore[type-arg]


ALIASED = 256
"""Rows of a block whose length is a multiple of this many elements share sets of L1."""


def tiles(
    values: Values,
    units: Units,
    schedule: Schedule,
    scratch: Scratch,
    scope: Scope,
    lanes: Lanes,
    walk: Pass,
    body: Body,
) -> None:
    """Add the loops over one band, or over one chunk of it, to the scope of its unit."""
    axis, lane, count = schedule.tile, schedule.lane, schedule.lanes
    assert axis is not None
    assert lane is not None
    tile = _Tile(values, units, schedule, scope, lanes)
    whole = _whole(tile, walk, body)
    if units.whole_tiles():
        inner = whole
    else:
        inner = Code()
        inner.enclose(f"if ({tile.rows} >= {count} && {tile.columns} >= {count})", whole)
        inner.enclose("else", _edge(tile, scratch, walk, body))
    column, first = tile.column, tile.first
    loops = [f"for (long {column} = 0; {column} < {tile.bound}; {column} += {count})"]
    if schedule.band != count:
        start, end = f"long {first} = {units.band}", f"{first} < {units.band}_end"
        loops.append(f"for ({start}; {end}; {first} += {count})")
    for header in reversed(loops) if short_rows(values.facts, lane, axis) else loops:
        outer = Code()
        outer.loop(header, inner)
        inner = outer
    scope.code.extend(inner)


class _Tile:
    """Names and scopes for one tile."""

    def __init__(
        self, values: Values, units: Units, schedule: Schedule, scope: Scope, lanes: Lanes
    ) -> None:
        assert schedule.tile is not None
        assert schedule.lane is not None
        self.values, self.lanes, self.count = values, lanes, schedule.lanes
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


def fill_blocks(
    values: Values, units: Units, schedule: Schedule, scratch: Scratch, scope: Scope, lanes: Lanes
) -> None:
    """Add the loops that transpose a unit's tiles into blocks, which later reads use.

    The scope must have the start of the band and of the chunk.
    """
    axis, lane, count = schedule.tile, schedule.lane, schedule.lanes
    assert axis is not None
    assert lane is not None
    row, column, bound = units.axis_names[axis], units.lane_name, units.lane_bound()
    rows = units.band_rows()
    width = schedule.chunk
    if width is None:
        width = padded(units.lane_size(), count)
        if isinstance(width, int) and width % ALIASED == 0:
            width += count
    sizes: list[tuple[int, Size]] = [(axis, schedule.band), (lane, width)]
    even = all(
        isinstance(size, int) and size % count == 0
        for size in (values.facts.nest.axes[axis].size, units.lane_size())
    )
    tile = Code()
    for read in turned_reads(values.facts, lane, axis):
        base, stride = values.bases[read.buffer], step_text(read.address.strides[lane])
        wanted = f"{base_name(read.buffer)}_block"
        array = scratch.array(wanted, read.dtype, sizes, len(read.address.strides), count)
        pointer = f"{values.pointer(base, read.address, scope)} + {column} * {stride} + {row}"
        pitch = step_text(array.address.strides[axis])
        into = f"{array.base.name} + {row} * {pitch} + {column}"
        whole = lanes.transpose_tile(base.dtype, pointer, stride, into, pitch)
        if even:
            tile.add(whole)
        else:
            left = (f"{rows} - {row}", f"{bound} - {column}")
            tile.add(f"if ({left[0]} >= {count} && {left[1]} >= {count})")
            tile.add(f"    {whole}")
            tile.add("else")
            edge = lanes.transpose_edge(base.dtype, pointer, stride, into, pitch, *left)
            tile.add(f"    {edge}")
        values.blocks[read] = (array.base, array.address)
    columns = Code()
    columns.loop(f"for (long {row} = 0; {row} < {rows}; {row} += {count})", tile)
    header = f"for (long {column} = 0; {column} < {bound}; {column} += {count})"
    scope.code.loop(header, columns)
