"""Square tiles: reads that run along another axis than the lanes, transposed in registers.

Used where they are transposed (`tiles`):

    for band of rows:                       as many rows as there are lanes
        for columns, a vector a step:
            load the tile along its rows' axis, transpose it
            for each row of the band:       its register of the tile, all else as everywhere
        for each row, the columns left over: strided loads

or all tiles of a block first, then its rows (`fill_blocks`, chosen by `schedule.used_at_once`):

    for band of rows, chunk of columns:     64 x 128 float32: 32 KB, which stay in L1
        for each tile: load it along its rows' axis, transpose it, store it in the block
        for each row of the band:           walked as everywhere, 128 elements at a time

A tile of 16 x 16 float32 uses whole lines, so that nothing has to wait in L1 for the next tile but
what the machine fetched ahead. A smaller tile leaves half a line, and where rows are 4096 bytes
apart the lines of 16 rows (and those written to 16 others) compete for the 8 or 12 places of one
set. Then blocks are faster: `y + x.t()` of 1024 x 1024 float32 1.3 times with 16 lanes, twice with
8 or 4. With 16 lanes and 1000 x 1000 they would take a tenth longer.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.codegen.cpp.nests.addresses import step_text
from compiler.codegen.cpp.nests.code import Code, Scope
from compiler.codegen.cpp.nests.names import base_name
from compiler.codegen.cpp.nests.passes import Pass
from compiler.codegen.cpp.nests.schedule import Schedule, tiled_reads
from compiler.codegen.cpp.nests.scratch import Scratch
from compiler.codegen.cpp.nests.units import Units
from compiler.codegen.cpp.nests.values import Values
from compiler.codegen.cpp.vocabulary import Lanes
from compiler.loops.dtypes import compute_dtype

Body = Callable[[Pass, Scope, list, int], None]  # type: ignore[type-arg]


def tiles(
    values: Values,
    units: Units,
    schedule: Schedule,
    scope: Scope,
    lanes: Lanes,
    walk: Pass,
    body: Body,
) -> None:
    """Add the loops over one band to the scope of its unit."""
    axis, lane, count = schedule.tile, schedule.lane, schedule.lanes
    assert axis is not None
    assert lane is not None
    name, row, band = units.lane_name, units.axis_names[axis], units.band
    bound = units.lane_bound()
    scalar = scope.lanes
    corner = Scope(scope, scalar, {axis: (band, 1), lane: (name, 1)})
    inner = Scope(scope, scalar, {axis: (row, 1)})
    vector = Scope(inner, lanes, {lane: (name, 1)}, is_lane=True)
    for read in tiled_reads(values.facts, lane, axis):
        base = values.bases[read.buffer]
        dtype = compute_dtype(read.dtype)
        tile = values.name(("tile", read), f"{base_name(read.buffer)}_tile")
        pointer = values.pointer(base, read.address, corner)
        load = lanes.load(base.dtype, f"{pointer} + k * {step_text(read.address.strides[lane])}")
        corner.code.add(f"{lanes.type(dtype)} {tile}[{count}];")
        one = Code()
        one.add(f"{tile}[k] = {load};")
        corner.code.enclose(f"for (long k = 0; k < {count}; k++)", one)
        corner.code.add(lanes.transpose([f"{tile}[{k}]" for k in range(count)], dtype))
        vector.memo[read] = f"{tile}[{row} - {band}]"
    body(walk, vector, [], 0)
    inner.code.extend(vector.code)
    corner.code.enclose(f"for (long {row} = {band}; {row} < {band}_end; {row}++)", inner.code)
    scope.code.add(f"long {name}_done = 0;")
    values.names.given.append(f"{name}_done")
    whole = Code()
    header = f"for (long {name} = 0; {name} + {count} <= {bound}; {name} += {count})"
    corner.code.add(f"{name}_done = {name} + {count};")
    whole.enclose(header, corner.code)
    scope.code.enclose(f"if ({band}_end - {band} == {count})", whole)
    edge = Scope(scope, scalar, {axis: (row, 1)})
    rest = Scope(edge, lanes, {lane: (name, 1)}, is_lane=True, count="count")
    body(walk, rest, [], 0)
    step = Code()
    step.add(f"const long count = {bound} - {name} < {count} ? {bound} - {name} : {count};")
    step.extend(rest.code)
    header = f"for (long {name} = {name}_done; {name} < {bound}; {name} += {count})"
    edge.code.enclose(header, step)
    scope.code.enclose(f"for (long {row} = {band}; {row} < {band}_end; {row}++)", edge.code)


def fill_blocks(
    values: Values, units: Units, schedule: Schedule, scratch: Scratch, scope: Scope, lanes: Lanes
) -> None:
    """Add the loops that transpose a unit's tiles into blocks, and read from those from now on.

    The scope knows where the band and the chunk start.
    """
    axis, lane, count = schedule.tile, schedule.lane, schedule.lanes
    assert axis is not None
    assert lane is not None
    assert schedule.chunk is not None
    row, column, bound = units.axis_names[axis], units.lane_name, units.lane_bound()
    rows = units.band_rows()
    sizes = [(axis, schedule.band), (lane, schedule.chunk)]
    even = all(
        isinstance(size, int) and size % count == 0
        for size in (values.facts.nest.axes[axis].size, units.lane_size())
    )
    tile = Code()
    for read in list(tiled_reads(values.facts, lane, axis)):
        base, stride = values.bases[read.buffer], step_text(read.address.strides[lane])
        wanted = f"{base_name(read.buffer)}_block"
        array = scratch.array(wanted, read.dtype, sizes, len(read.address.strides), count)
        pointer = f"{values.pointer(base, read.address, scope)} + {column} * {stride} + {row}"
        width = step_text(array.address.strides[axis])
        into = f"{array.base.name} + {row} * {width} + {column}"
        whole = lanes.transpose_tile(base.dtype, pointer, stride, into, width)
        if even:
            tile.add(whole)
        else:
            left = (f"{rows} - {row}", f"{bound} - {column}")
            tile.add(f"if ({left[0]} >= {count} && {left[1]} >= {count})")
            tile.add(f"    {whole}")
            tile.add("else")
            edge = lanes.transpose_edge(base.dtype, pointer, stride, into, width, *left)
            tile.add(f"    {edge}")
        values.blocks[read] = (array.base, array.address)
    columns = Code()
    columns.enclose(f"for (long {row} = 0; {row} < {rows}; {row} += {count})", tile)
    header = f"for (long {column} = 0; {column} < {bound}; {column} += {count})"
    scope.code.enclose(header, columns)
