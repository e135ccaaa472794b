"""Square tiles: reads that run along another axis than the lanes, transposed in registers.

for band of rows:                       as many rows as there are lanes
    for columns, a vector a step:
        load the tile along its rows' axis, transpose it
        for each row of the band:       its register of the tile, all else as everywhere
    for each row, the columns left over: strided loads
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.codegen.cpp.nests.addresses import step_text
from compiler.codegen.cpp.nests.code import Code, Scope
from compiler.codegen.cpp.nests.names import base_name
from compiler.codegen.cpp.nests.passes import Pass
from compiler.codegen.cpp.nests.schedule import Schedule, tiled_reads
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
