"""What a nest costs with an axis on the lanes: vector instructions per 16 useful elements."""

from __future__ import annotations

from compiler.codegen.cpp.nests.interleaved import all_interleaved
from compiler.codegen.cpp.nests.tiling import share_a_set
from compiler.codegen.cpp.nests.windows import window
from compiler.codegen.cpp.vocabulary.strided import is_near
from compiler.codegen.nests.facts import Facts, estimate
from compiler.loops.expressions import Read, ReadIndexed
from compiler.loops.nest import Reduction, ScanAlong, Statement, Write, reads_in
from compiler.loops.sizes import Size

TILED = 6
"""Cost of a transposed read in vector instructions: its load, transpose steps and store."""
PARTIAL = 0.85
"""Time of a partial tile, relative to that of a whole one."""
EVICTED = 8
"""Cost of an element whose line was evicted since its last use, in instructions."""
HORIZONTAL = 12
"""Cost of reducing one accumulator across lanes, in vector instructions."""
RUN = 256
"""Elements of a kept axis that a unit with several positions of inner axes has on the lanes."""
WINNER = 6
"""An argmax takes this many times `HORIZONTAL`: finding the best value, the lanes that hold it and
the first of these is one dependent chain."""


def lane_cost(
    facts: Facts, lane: int, lanes: int, sizes: list[Size], row: bool, turned: set[Read | Write]
) -> float:
    """Vector instructions per 16 useful elements.

    `turned`: reads that are transposed before rows are traversed, and writes after it.
    """
    total = sum(_turned_cost(part, sizes, lanes) for part in turned)
    mixed = frozenset(all_interleaved(facts, lane, lanes))
    size = estimate(sizes[lane])
    steps = -(-size // lanes)
    for statement in facts.nest.statements:
        often = _frequency(facts, statement, lane, sizes)
        beside = row and lane not in facts.domain(statement)  # once for all vectors of a row
        total += often * facts.statement_weight(statement) / (max(steps, 1) if beside else 1)
        for part in reads_in([statement]):
            if lane in facts.axes(part):
                indexed = isinstance(part, ReadIndexed) and any(
                    lane in facts.axes(term.index) for term in part.terms
                )
                step: Size = 0 if part.address.then or indexed else part.address.strides[lane]
                seen = window(facts, part, lane) if isinstance(part, ReadIndexed) else None
                if seen is not None:
                    step = seen.step
                total += often * (1 if part in turned else load_cost(step, lanes))
        if isinstance(statement, Write) and lane in facts.domain(statement):
            unit = statement.address.strides[lane] == 1 and not statement.address.then
            apart = not unit or any(lane in facts.axes(term.index) for term in statement.terms)
            apart = apart and statement not in turned
            stores: float = 1.5 * lanes if apart else 1
            if statement in mixed:
                stores = estimate(statement.address.strides[lane])  # a store, the rest shuffles
            total += often * stores
            if statement.mode != "set":
                total += often * (lanes if apart else 1)
        elif isinstance(statement, ScanAlong):
            doublings = lanes.bit_length() - 1  # of a prefix scan within a register
            total += 4 * doublings if statement.axis == lane else 3
    total /= size / (steps * lanes) if size else 1
    reductions = [s for s in facts.nest.statements if isinstance(s, Reduction) and facts.is_main(s)]
    if row:
        whole = steps
        for axis in facts.reduced - {lane}:
            whole *= max(estimate(sizes[axis]), 1)
        across = sum(WINNER if s.op in ("argmax", "argmin") else 1 for s in reductions)
        total += HORIZONTAL * across / max(whole, 1)
        total += 4 / max(steps, 1)
    else:
        total += 2 * len(reductions)
        riders = [s for s in facts.nest.statements if facts.is_rider(s) and s.axes]
        across = sum(isinstance(s, Reduction) and lane in s.over for s in riders)
        total += HORIZONTAL * across / max(min(steps, RUN // lanes), 1)
    return total * 16 / lanes


def _turned_cost(part: Read | Write, sizes: list[Size], lanes: int) -> float:
    """The cost of a transposed access. Of a partial tile, a write stores only the vectors that
    there are."""
    return (
        TILED if isinstance(part, Write) else tile_cost(sizes[part.address.strides.index(1)], lanes)
    )


def tile_cost(wide: Size, lanes: int) -> float:
    """The cost of a transposed vector of `wide` rows; the last tile may be partial."""
    if not isinstance(wide, int) or not wide:
        return TILED
    whole, left = divmod(wide, lanes)
    return TILED * lanes * (whole + (PARTIAL if left else 0)) / wide


def load_cost(step: Size, lanes: int) -> int:
    """Instructions that load a vector of elements this far apart; 0: at unrelated places."""
    if step == 1:
        return 1
    return 2 * abs(step) if isinstance(step, int) and is_near(lanes, step) else lanes


def _frequency(facts: Facts, statement: Statement, lane: int, sizes: list[Size]) -> float:
    """How often a statement runs for each position of the nest: once for all positions of reduced
    axes that are not its own (the picked element of a row, what follows its sum)."""
    often = 1.0
    for axis in facts.reduced - facts.domain(statement) - {lane}:
        often /= max(estimate(sizes[axis]), 1)
    return often


def eviction_cost(
    facts: Facts, lane: int, lanes: int, turned: set[Read | Write], scatters: bool
) -> float:
    """Instructions' time per 16 elements for lines of a vector that evict each other from L1.

    A line that is written is needed again for its other elements; a scatter walks along all lines,
    those that it reads too.
    """
    found = 0
    for part in reads_in(facts.nest.statements) if scatters else ():
        if not part.address.then:
            found += share_a_set(part.address.strides[lane], part.dtype, lanes)
    for statement in facts.nest.statements:
        if isinstance(statement, Write) and not statement.address.then and statement not in turned:
            found += share_a_set(statement.address.strides[lane], statement.dtype, lanes)
    return 16.0 * EVICTED * found
