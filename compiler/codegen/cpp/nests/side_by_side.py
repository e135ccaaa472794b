"""Rows that add to the same few columns, taken several at a time, each with registers of its own.

With one register for a column, each row would wait for the addition of the row before it: 4 cycles
for as little as 3 elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.codegen.cpp.nests.accumulators import Accumulator, Accumulators
from tcw.compiler.codegen.cpp.nests.code import Code, Scope

ROWS = 4
"""Maximum number of rows taken at once."""
HEAVY = 96
"""Maximum weight of what one step computes: several rows, or several vectors of a row."""
COLUMN_REGISTERS = 8
"""Maximum number of vectors that sums or scans of columns carry from one row to the next in
registers; AVX2 has 16 of them."""


def rows_at_once(sums: Sequence[Accumulator], weight: int) -> int:
    """How many rows of this weight add to the sums side by side."""
    registers = sum(len(accumulator.names) for accumulator in sums)
    rows = ROWS if registers else 1
    while rows > 1 and (rows * registers > COLUMN_REGISTERS or rows * weight > HEAVY):
        rows //= 2
    return rows


def rows_loop(
    accumulators: Accumulators, block: Scope, row: Code, bounds: tuple[str, str, str], rows: int
) -> None:
    """The loop over the rows of a block: `bounds` are the index, its begin and its end."""
    name, begin, end = bounds
    if rows == 1:
        block.code.loop(f"for (long {name} = {begin}; {name} < {end}; {name}++)", row)
        return
    sums = accumulators.of_columns(block)
    own = [register for accumulator in sums for register in accumulator.names]
    kinds = [
        accumulators.vector.type(accumulator.dtype)
        for accumulator in sums
        for _ in accumulator.names
    ]
    calls, single = Code(), Code()
    for place in range(rows):
        names = (
            own
            if not place
            else [r for accumulator in sums for r in accumulators.copy(accumulator)]
        )
        at = f"{name} + {place}" if place else name
        calls.add(f"row_step({', '.join([at, *names])});")
    single.add(f"row_step({', '.join([name, *own])});")
    registers = (f"{kind}& {register}" for kind, register in zip(kinds, own, strict=True))
    parameters = ", ".join([f"long {name}", *registers])
    head = f"const auto row_step = [&]({parameters}) __attribute__((always_inline))"
    block.code.enclose(head, row, "};")
    block.code.add(f"long {name} = {begin};")
    block.code.loop(f"for (; {name} + {rows} <= {end}; {name} += {rows})", calls)
    block.code.loop(f"for (; {name} < {end}; {name}++)", single)
