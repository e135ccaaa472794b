"""What a nest costs with an axis on the lanes: vector instructions per 16 useful elements."""

from __future__ import annotations

from collections.abc import Container, Mapping

from tcw.compiler.codegen.cpp.nests.interleaved import all_interleaved
from tcw.compiler.codegen.cpp.nests.tiling import share_a_set
from tcw.compiler.codegen.cpp.nests.windows import window
from tcw.compiler.codegen.cpp.vocabulary.strided import is_near
from tcw.compiler.codegen.nests.facts import Facts, estimate
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Op, Read, ReadIndexed
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import Reduction, ScanAlong, Statement, Write, expressions, reads_in
from tcw.compiler.loops.operators import OPERATORS
from tcw.compiler.loops.sizes import Size

TILED, TILED_WRITE = 8, 22
"""Cost of a transposed read in vector instructions: its load, transpose steps and store; and of a
transposed write. These, `SUM` and `FUNCTION` fit 460 pairs of times, of rows of 2 to 100 elements
with the rows and with their elements on the lanes (Xeon, AVX-512): the choice costs 1% on average,
with equal costs for reads and writes, sums and maxima 7%."""
APART = 2
"""Cost of an element at a place of its own, in vector instructions, where no instruction gathers: a
load, and its share of the shuffles that all go through one port."""
PARTIAL = 0.85
"""Time of a partial tile, relative to that of a whole one."""
EVICTED = 8
"""Cost of an element whose line was evicted since its last use, in instructions."""
SUM, BEST, WINNER = 6, 16, 72
"""Cost of reducing one accumulator across lanes, in vector instructions: a sum, a maximum or
minimum, and its place, for which the best value, the lanes that hold it and the first of these form
one dependent chain."""
RIDER = 12
"""The same for what rides on rows, whose accumulators are added to memory."""
FUNCTION, LONG = 3, 8
"""Operators of at least this weight take so many times as long as their weight says, relative to
loads and additions, several of which run at once."""
RUN = 256
"""Elements of a kept axis that a unit with several positions of inner axes has on the lanes."""


def lane_cost(
    facts: Facts,
    lane: int,
    lanes: int,
    sizes: list[Size],
    row: bool,
    turned: Mapping[Read | Write, Size],
    gathers: bool,
) -> float:
    """Vector instructions per 16 useful elements.

    `turned`: reads that are transposed before rows are traversed, and writes after it, with the
    rows of their tiles.
    """
    total = sum(_turned_cost(part, rows, lanes) for part, rows in turned.items())
    mixed = frozenset(all_interleaved(facts, lane, lanes))
    size = estimate(sizes[lane])
    steps = -(-size // lanes)
    for statement in facts.nest.statements:
        often = _frequency(facts, statement, lane, sizes)
        beside = row and lane not in facts.domain(statement)  # once for all vectors of a row
        total += often * _weight(facts, statement, beside) / (max(steps, 1) if beside else 1)
        for part in reads_in([statement]):
            if lane in facts.axes(part):
                indexed = isinstance(part, ReadIndexed) and any(
                    lane in facts.axes(term.index) for term in part.terms
                )
                step: Size = 0 if part.address.then or indexed else part.address.strides[lane]
                seen = window(facts, part, lane) if isinstance(part, ReadIndexed) else None
                if seen is not None:
                    step = seen.step
                total += often * (1 if part in turned else load_cost(step, lanes, gathers))
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
        total += sum(_across(s) for s in reductions) / max(whole, 1)
        total += 4 / max(steps, 1)
    else:
        total += 2 * len(reductions)
        riders = [s for s in facts.nest.statements if facts.is_rider(s) and s.axes]
        summed = sum(isinstance(s, Reduction) and lane in s.over for s in riders)
        total += RIDER * summed / max(min(steps, RUN // lanes), 1)
    return total * 16 / lanes


def _weight(facts: Facts, statement: Statement, alone: bool) -> int:
    """Instructions of a statement at one position. `alone`: of one number, for all of a row, on
    which everything waits."""
    weights = [
        OPERATORS[part.name].weight for part in expressions(statement) if isinstance(part, Op)
    ]
    longest = sum(weight for weight in weights if weight >= LONG)
    return facts.statement_weight(statement) + (FUNCTION * (2 if alone else 1) - 1) * longest


def _across(reduction: Reduction) -> int:
    """Instructions that reduce an accumulator across lanes."""
    if reduction.op in ARG:
        return WINNER
    return SUM if reduction.op in ("sum", "prod") else BEST


def _turned_cost(part: Read | Write, rows: Size, lanes: int) -> float:
    """The cost of a transposed access. Of a partial tile, a write stores only the vectors that
    there are."""
    if isinstance(part, Write):
        return TILED_WRITE * min(BYTES[part.dtype], 4) / 4
    return tile_cost(rows, lanes)


def tile_cost(wide: Size, lanes: int) -> float:
    """The cost of a transposed vector of `wide` rows; the last tile may be partial."""
    if not isinstance(wide, int) or not wide:
        return TILED
    whole, left = divmod(wide, lanes)
    return TILED * lanes * (whole + (PARTIAL if left else 0)) / wide


def load_cost(step: Size, lanes: int, gathers: bool = True) -> int:
    """Instructions that load a vector of elements this far apart; 0: at unrelated places."""
    if step == 1:
        return 1
    if isinstance(step, int) and is_near(lanes, step):
        return 2 * abs(step)
    return lanes if gathers else APART * lanes


def _frequency(facts: Facts, statement: Statement, lane: int, sizes: list[Size]) -> float:
    """How often a statement runs for each position of the nest: once for all positions of reduced
    axes that are not its own (the picked element of a row, what follows its sum)."""
    often = 1.0
    for axis in facts.reduced - facts.domain(statement) - {lane}:
        often /= max(estimate(sizes[axis]), 1)
    return often


def eviction_cost(
    facts: Facts, lane: int, lanes: int, turned: Container[Read | Write], scatters: bool
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
