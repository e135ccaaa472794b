"""Riders: reductions that complete only after the nest.

In each block of units, a rider accumulates in an array. Block after block, the array is added to
one of a few totals in the workspace, which a later phase sums up. If the totals are small, each
block has its own. Blocks and totals depend only on the sizes, so that any number of threads gives
the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.codegen.cpp.nests.code import Code, Scope
from compiler.codegen.cpp.nests.row_arrays import RowArrays
from compiler.codegen.cpp.nests.schedule import STEPS, Schedule
from compiler.codegen.cpp.nests.scratch import Array
from compiler.codegen.cpp.nests.values import Values
from compiler.codegen.nests.facts import Facts
from compiler.codegen.nests.names import base_name
from compiler.loops.dtypes import compute_dtype
from compiler.loops.nest import Reduction
from compiler.loops.sizes import Size, c_expression

TURN_WORDS = 8
"""Numbers from one turn to the next: one cache line."""

CHAIN = 256
"""The most additions of floats, one after the other, to one partial result. Each rounds at the size
of the result, and equal addends round the same way every time: with ReLU's zeros, 2,000 squared
distances from the mean come out 8e-6 too small or too large, eight times as much as with 256."""
MOST_CHAINS = 1 << 11
"""Chains of one sum, at most."""


@dataclass(frozen=True, slots=True)
class Rider:
    """A reduction that completes only after the nest, with its array in the workspace."""

    statement: Reduction
    array: Array
    offset: Size
    """Byte offset in the workspace."""
    buffer: str
    """Its name in the workspace."""
    totals: int
    """The number of arrays there; block b adds to array b % totals."""
    width: Size
    """Elements from one array to the next."""


def chains(facts: Facts, rider: Reduction, plan: Schedule) -> int:
    """How many partial results a sum needs, each a chain of at most `CHAIN` additions; 1 for what
    does not round, and for unknown sizes."""
    if rider.op != "sum" or not compute_dtype(rider.expression.dtype).startswith("float"):
        return 1
    added = 1
    for axis in rider.over:
        size = facts.nest.axes[axis].size
        if not isinstance(size, int):
            return 1
        if axis == plan.lane:
            size = 1 if rider.axes else -(-size // (plan.lanes * STEPS))
        added *= size
    return min(-(-added // CHAIN), MOST_CHAINS)


class Blocks:
    """Initialises and finishes the riders' arrays in each block."""

    def __init__(
        self, schedule: Schedule, values: Values, arrays: RowArrays, riders: Mapping[str, Rider]
    ) -> None:
        self.schedule = schedule
        self.values = values
        self.arrays = arrays
        self.riders = riders

    def prepare(self, scope: Scope, turn: str | None) -> None:
        """Clear each rider's array. Without a `turn`, each block's array is a total of its own."""
        head = Code()
        for rider in self.riders.values():
            base = rider.array.base
            element = self.arrays.scalar.storage(base.dtype)
            if turn is None:
                head.add(f"{element}* {base.name} = {_total(rider, element, 'block')};")
            else:
                self.arrays.scratch.declare(base.name, base.dtype, rider.array.size)
            saved, scope.code = scope.code, head
            self.arrays.fill_identity(rider.array, rider.statement.op, scope)
            scope.code = saved
        head.extend(scope.code)
        scope.code = head

    def close(self, scope: Scope, turn: str | None) -> None:
        """Add each rider's array to its total when it is the block's turn."""
        if turn is None:
            return
        totals = next(iter(self.riders.values())).totals
        mine = turn if totals == 1 else f"{turn} + block % {totals} * {TURN_WORDS}"
        scope.code.add(f"wait_for_turn({mine}, block);")
        for rider in self.riders.values():
            self._add(rider, scope)
        scope.code.add(f"end_turn({mine}, block + {totals});")

    def _add(self, rider: Rider, scope: Scope) -> None:
        """`total = part` in the first block of a total, `total op= part` in the others."""
        part, dtype = rider.array.base, rider.array.base.dtype
        lane, size = self.schedule.lane, c_expression(rider.array.size)
        along = lane is not None and rider.array.address.strides[lane] != 0
        lanes = self.arrays.vector if along else self.arrays.scalar
        whole = isinstance(rider.array.size, int) and rider.array.size % lanes.count == 0
        of = f"block % {rider.totals}"
        total = self.values.names.new(f"{base_name(rider.statement.name)}_total")
        element = self.arrays.scalar.storage(dtype)
        scope.code.add(f"{element}* {total} = {_total(rider, element, of)};")
        mine, at = f"{part.name} + i", f"{total} + i"
        left = f"{size} - i < {lanes.count} ? {size} - i : {lanes.count}"

        def loaded(pointer: str) -> str:
            if whole:
                return lanes.load(dtype, pointer)
            return lanes.load_partial(dtype, pointer, left)

        def stored(value: str) -> Code:
            code = Code()
            if whole:
                code.add(lanes.store(dtype, at, value))
            else:
                code.add(lanes.store_partial(dtype, at, value, left))
            return code

        loop = f"for (long i = 0; i < {size}; i += {lanes.count})"
        first = "block == 0" if rider.totals == 1 else f"block < {rider.totals}"
        scope.code.enclose(f"if ({first}) {loop}", stored(loaded(mine)))
        both = lanes.combine(rider.statement.op, loaded(at), loaded(mine), dtype)
        scope.code.enclose(f"else {loop}", stored(both))


def _total(rider: Rider, element: str, number: str) -> str:
    """A pointer to one of the totals."""
    start = f"({element}*)(workspace + {c_expression(rider.offset)})"
    if rider.totals == 1:
        return start
    return f"{start} + {number} * {c_expression(rider.width)}"
