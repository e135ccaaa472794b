"""Riders: reductions that finish only after the nest.

In each block of units, a rider accumulates in an array. Block after block, the array is added to
one of a few totals in the workspace, which a later phase sums up. If the totals are small, each
block has its own. Blocks and totals depend only on the sizes, so that any number of threads gives
the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tcw.compiler.codegen.cpp.nests.code import Code, Scope
from tcw.compiler.codegen.cpp.nests.schedule import STEPS, Schedule
from tcw.compiler.codegen.cpp.nests.scratch import Array, Elements, RowArrays
from tcw.compiler.codegen.cpp.nests.vector_values import Values
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.loops.dtypes import BYTES, FLOATS, compute_dtype
from tcw.compiler.loops.nest import Nest, Reduction
from tcw.compiler.loops.sizes import Size, c_expression

TURN_WORDS = 8
"""Numbers from one turn to the next: one cache line."""

CHAIN = 256
"""The most additions of floats, one after the other, to one partial result. Each rounds at the size
of the result, and equal addends round the same way every time: with ReLU's zeros, 2,000 squared
distances from the mean come out 8e-6 too small or too large, eight times as much as with 256."""
MOST_CHAINS = 1 << 11
"""Chains of one sum, at most."""
TOTALS = 8
"""The number of totals that the blocks share if one per block would take too much memory."""
EACH_BYTES, TOTALS_BYTES = 1 << 14, 1 << 16
"""Workspace limits in bytes: for one total per block, and for `TOTALS` of them. If both are
exceeded there is a single total. A block waits for earlier blocks of its total; with many threads
this wait dominates, since each hand-over is a cache miss and they are sequential."""
LARGE_BYTES, LARGE_BLOCKS = 1 << 15, 16
"""Partial results of more than LARGE_BYTES leave L1 while a block adds them to a total. At most
LARGE_BLOCKS blocks have such results, each with a total of its own: none waits for another."""
PRODUCTS = 8
"""Maximum number of blocks of a product. If the factors are below 1, each of its chains passes
through the denormal numbers once, at 150 cycles a step on an Intel core."""
EACH_FACTORS = 1 << 18
"""Minimum number of factors in a block of one product of floats. On one thread of a Xeon, 2^17
random float64 take 29 µs in one block and 86 in eight, 2^18 float32 25 and 52."""
PRODUCT_STEPS = 2
"""Vectors per step of a product of floats. Below 1, each of their accumulators passes through the
denormal numbers, too. On a Xeon, 2^16 random float64 take 25 µs with two and 31 with four; ones,
1 µs more."""


@dataclass(frozen=True, slots=True)
class Rider:
    """A reduction that finishes only after the nest, with its array in the workspace."""

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


def total_width(array: Array) -> Size:
    """Elements from one total to the next; each starts on its own cache line."""
    assert isinstance(array.size, int)
    line = 64 // BYTES[array.base.dtype]
    return -(-array.size // line) * line


def product_blocks(nest: Nest, rider: Reduction) -> int:
    """The most blocks of a product."""
    factors = nest.size(rider.over)
    if rider.axes or rider.expression.dtype not in FLOATS or not isinstance(factors, int):
        return PRODUCTS
    return max(min(factors // EACH_FACTORS, PRODUCTS), 1)


def totals_of(blocks: int, arrays: Iterable[Array]) -> int:
    """The number of totals that the blocks add to."""
    bytes_ = 0
    for array in arrays:
        if not isinstance(array.size, int):
            return 1
        bytes_ += -(-array.size * BYTES[array.base.dtype] // 64) * 64
    if blocks * bytes_ <= EACH_BYTES or (bytes_ > LARGE_BYTES and blocks <= LARGE_BLOCKS):
        return blocks
    return TOTALS if blocks > TOTALS and TOTALS * bytes_ <= TOTALS_BYTES else 1
