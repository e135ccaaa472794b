"""The tile of a program: how many positions and rows it takes, and with how many threads.

A thread moves memory 16 bytes at a time, so it gets at least as many neighbouring elements of the
narrowest dtype as these hold. A program holds a whole row if that fits in its registers; short rows
share a program until each warp has enough to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.codegen.nests.facts import Facts
from compiler.codegen.triton.limits import PERSISTENT, Limits
from compiler.codegen.triton.split import Part
from compiler.loops.dtypes import BYTES
from compiler.loops.expressions import Read, ReadIndexed
from compiler.loops.nest import Nest, Write, expressions
from compiler.loops.sizes import Size, product

WARP = 32
VECTOR = 16
"""Bytes that one instruction of a thread moves."""


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


def choose(part: Part, limits: Limits) -> Tile:
    """The tile of a kernel, by the model above."""
    nest = part.nest
    facts = Facts(nest)
    kept = tuple(i for i, axis in enumerate(nest.axes) if not axis.reduced)
    row = tuple(i for i, axis in enumerate(nest.axes) if axis.reduced)
    rows = limits.number(_size(nest, kept))
    if row:
        return _of_rows(part, facts, limits, kept, row, rows)
    second = _second(nest, kept)
    if second is not None and limits.number(nest.axes[second].size) >= 16:
        first = tuple(axis for axis in kept if axis != second)
        return Tile(first, (second,), 32, 64, 4)
    width = VECTOR // _narrowest(nest)
    block = WARP * 4 * min(max(width, 4), 8)
    while block > WARP * 4 and rows < block * limits.processors:
        block //= 2
    return Tile(kept, (), block, 0, 4)


def _of_rows(
    part: Part,
    facts: Facts,
    limits: Limits,
    kept: tuple[int, ...],
    row: tuple[int, ...],
    rows: int,
) -> Tile:
    nest = part.nest
    length = limits.number(_size(nest, row))
    static = isinstance(_size(nest, row), int)
    across = bool(kept) and max(kept) > max(row)
    if part.form == "partial":
        if across:
            x = min(power_of_two(max(rows, 1)), 64)
            return Tile(kept, row, x, max(2048 // x, 16), 4, looped=True)
        return Tile(kept, row, 1, 4096, 8, looped=True)
    if across and length > 64:
        x = min(power_of_two(max(rows, 1)), 32)
        return Tile(kept, row, x, min(power_of_two(length), 2048 // x), 4, looped=True)
    if static and length <= PERSISTENT:
        block = power_of_two(length)
        x = 1
        while x * block < 2048 and rows // (2 * x) >= 4 * limits.processors:
            x *= 2
        if across:
            x = max(x, min(32, power_of_two(rows)))
        per_thread = 16 if _narrowest(nest) < 4 else 8
        warps = min(max(power_of_two(x * block // (WARP * per_thread)), 1), 16)
        if part.form == "riding":
            warps = min(max(warps, 4), 16)
        return Tile(kept, row, x, block, warps)
    block = min(4096, power_of_two(max(length, 128)))
    return Tile(kept, row, 1, block, min(max(block // (WARP * 8), 1), 16), looped=True)


def power_of_two(number: int) -> int:
    """The least power of two that is at least `number`."""
    return 1 << max(number - 1, 0).bit_length()


def _size(nest: Nest, axes: tuple[int, ...]) -> Size:
    return product(nest.axes[axis].size for axis in axes)


def _narrowest(nest: Nest) -> int:
    sizes = [
        BYTES[part.dtype]
        for statement in nest.statements
        for part in expressions(statement)
        if isinstance(part, (Read, ReadIndexed))
    ]
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
