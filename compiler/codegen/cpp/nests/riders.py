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
from compiler.codegen.cpp.nests.row_arrays import Elements, RowArrays
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

    def __init__(self, values: Values, arrays: RowArrays, riders: Mapping[str, Rider]) -> None:
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
        each = Elements(self.arrays, rider.array)
        total = self.values.names.new(f"{base_name(rider.statement.name)}_total")
        element = self.arrays.scalar.storage(dtype)
        at = _total(rider, element, f"block % {rider.totals}")
        scope.code.add(f"{element}* {total} = {at};")
        first = "block == 0" if rider.totals == 1 else f"block < {rider.totals}"
        new, more = Code(), Code()
        new.add(each.store(total, each.load(part.name)))
        one, two = each.load(total), each.load(part.name)
        more.add(each.store(total, each.lanes.combine(rider.statement.op, one, two, dtype)))
        scope.code.enclose(f"if ({first}) {each.head}", new)
        scope.code.enclose(f"else {each.head}", more)


def _total(rider: Rider, element: str, number: str) -> str:
    """A pointer to one of the totals."""
    start = f"({element}*)(workspace + {c_expression(rider.offset)})"
    if rider.totals == 1:
        return start
    return f"{start} + {number} * {c_expression(rider.width)}"
