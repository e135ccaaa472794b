"""Phases: a nest as one or more nests that run one after another.

A rider (a reduction that finishes only after the whole nest) accumulates in the workspace. A
second, small nest computes what follows from the results alone. A third one computes what needs
both the results and the whole domain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from tcw.compiler.codegen.choices import Chooser, NestChooser, of_nest
from tcw.compiler.codegen.cpp.isa import Isa
from tcw.compiler.codegen.cpp.nests import questions
from tcw.compiler.codegen.cpp.nests.code import RESERVED
from tcw.compiler.codegen.cpp.nests.long_rows import online
from tcw.compiler.codegen.cpp.nests.passes import with_invariants
from tcw.compiler.codegen.cpp.nests.riders import (
    EACH_BYTES,
    LARGE_BLOCKS,
    LARGE_BYTES,
    TURN_WORDS,
    Rider,
    chains,
    product_blocks,
    total_width,
    totals_of,
)
from tcw.compiler.codegen.cpp.nests.schedule import COLUMNS, UNITS, Schedule, schedule
from tcw.compiler.codegen.cpp.nests.scratch import Array, dense
from tcw.compiler.codegen.cpp.nests.units import BLOCKS, Units
from tcw.compiler.codegen.cpp.nests.vector_values import Base
from tcw.compiler.codegen.nests.facts import LINE, Facts, estimate, overwrites
from tcw.compiler.codegen.nests.names import Names
from tcw.compiler.codegen.nests.simplify import behind_a_leading_axis, regroup, simplify
from tcw.compiler.codegen.nests.workspace import Workspace
from tcw.compiler.loops.dtypes import BYTES, compute_dtype
from tcw.compiler.loops.expressions import Address, Expression, Local, Read, convert
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import (
    Axis,
    Let,
    Nest,
    Reduction,
    ScanAlong,
    Statement,
    Write,
    rewritten,
)
from tcw.compiler.loops.sizes import Size, multiply

SMALL = 100_000
"""Work (elements times instructions) below which a nest stays on one thread: 2 µs, of which half
is what starting a team and waiting for it takes. ATen shares from 32,768 elements on; what it has
shared lies in the caches of all cores."""
DIVIDED = 1 << 19
"""The same for a nest whose reductions threads would share: their parts have to be combined."""
EACH_ROWS = 4
"""Minimum number of rows per block for which adding its partial sums to the totals costs little;
with fewer, threads share the columns if there are enough."""
LONG_ROWS = 1 << 16
"""Elements per reduction that justify several threads."""


Result = Reduction | Let


@dataclass(slots=True)
class NestPhase:
    """One nest with its schedule."""

    nest: Nest
    facts: Facts
    schedule: Schedule
    small: bool
    riders: dict[str, Rider] = field(default_factory=dict)
    blocks: int | None = None
    totals: int = 1
    """Block b adds to total b % totals. With one total per block, no block waits."""
    turn: Size | None = None
    """Byte offset in the workspace of the turns: for each total, the number of the block whose turn
    it is to add."""
    choose: NestChooser | None = None
    """May override choices."""
    large: bool | None = None
    """Whether threads share the nest, regardless of its size; None lets the size decide."""


@dataclass(slots=True)
class NestPhases:
    """All phases of a nest, and the workspace that connects them."""

    isa: Isa
    shared: frozenset[str] = frozenset()
    """Buffers that may occupy the memory of another buffer of the nest."""
    order: list[NestPhase] = field(default_factory=list)
    workspace: Workspace = field(default_factory=lambda: Workspace(LINE))
    chooser: Chooser | None = None

    def add(self, nest: Nest, spread: bool = True) -> None:
        """Append the phases of a nest. `spread`: long reductions may be split into blocks."""
        nest = simplify(nest)
        facts = Facts(nest)
        choose = of_nest(self.chooser, nest)
        if spread and _spreads(facts, self.isa, choose):
            flat = tuple(Axis(axis.size) for axis in nest.axes)
            nest = simplify(replace(nest, axes=flat))
            facts = Facts(nest)
        riders = [s for s in nest.statements if isinstance(s, Reduction) and facts.is_rider(s)]
        if not riders:
            self.order.append(self._phase(nest, choose))
            return
        self._with_riders(facts, riders, choose)

    def _phase(self, nest: Nest, choose: NestChooser | None, least: int = SMALL) -> NestPhase:
        """`least`: the work from which threads share the nest."""
        nest = with_invariants(nest)
        facts = Facts(nest)
        plan, small = schedule(facts, self.isa, choose), is_small(facts, least)
        walked = online(facts, plan)
        if walked is not nest:
            nest, facts = walked, Facts(walked)
        phase = NestPhase(nest, facts, plan, small, choose=choose)
        if choose is not None:
            work = work_of(facts)
            one = questions.threads(choose, phase.small, work, least)
            if one != phase.small:
                phase.small = one and work is not None
                phase.large = not one
        return phase

    def _with_riders(
        self, facts: Facts, riders: list[Reduction], choose: NestChooser | None
    ) -> None:
        nest = facts.nest
        after = _depending(facts, {rider.name for rider in riders})
        riders = [rider for rider in riders if id(rider) not in after]
        after |= self._overwriting(facts, after, {rider.name for rider in riders})
        before = [s for s in nest.statements if s not in riders and id(s) not in after]
        later = [s for s in nest.statements if id(s) in after]
        apart = [r for r in riders if r.op in ARG or _inner_only(facts, r, choose)]
        along = [r for r in riders if r not in apart]
        groups: dict[tuple[int, ...], list[Reduction]] = {}
        for rider in along:
            groups.setdefault(tuple(sorted(rider.axes)), []).append(rider)
        homes: list[tuple[tuple[int, ...], list[Reduction], list[Statement]]] = []
        rest = list(later)
        totals: set[str] = set()
        for axes, members in [*groups.items(), *(((*r.axes,), [r]) for r in apart)]:
            names = {r.name for r in members}
            mine: list[Statement] = []
            for statement in list(rest):
                needed = set(facts.locals_in(statement))
                inside = needed <= names and facts.domain(statement) <= set(axes)
                if inside and isinstance(statement, (Let, Write)):
                    mine.append(statement)
                    rest.remove(statement)
                    if isinstance(statement, Let):
                        names.add(statement.name)
            homes.append((axes, members, mine))
        wanted = {name for s in rest for name in facts.locals_in(s)}
        for _, members, mine in homes:
            defined: list[Result] = [*members, *(s for s in mine if isinstance(s, Let))]
            totals |= {s.name for s in defined if s.name in wanted}
        reads: dict[str, Read] = {}
        for _, members, mine in homes:
            if members[0] in apart:
                self._apart(facts, members[0], mine, totals, reads)
        if along:
            phase = self._riding(facts, [*before, *along], along, nest, choose)
            for axes, members, mine in homes:
                if members[0] not in apart:
                    self._combine(facts, phase, axes, members, mine, totals, reads)
        elif any(isinstance(s, Write) for s in before):
            self.add(replace(nest, statements=tuple(_needed(facts, before))))
        if rest:
            self.add(_reading(facts, rest, reads))

    def _overwriting(self, facts: Facts, after: set[int], riders: set[str]) -> set[int]:
        """Ids of the writes that must wait because statements after the riders read their buffers.

        These statements read the riders' own results from the workspace.
        """
        later = [s for s in facts.nest.statements if id(s) in after]
        needed = _needed(facts, later, without=riders)
        read = set(replace(facts.nest, statements=tuple(needed)).reads())
        return {
            id(s)
            for s in facts.nest.statements
            if isinstance(s, Write) and overwrites(s, self.shared) & read
        }

    def _riding(
        self,
        facts: Facts,
        statements: list[Statement],
        riders: list[Reduction],
        nest: Nest,
        choose: NestChooser | None,
    ) -> NestPhase:
        order = {id(s): place for place, s in enumerate(nest.statements)}
        statements.sort(key=lambda s: order[id(s)])
        riding = replace(nest, statements=tuple(_needed(facts, statements)))
        phase = self._phase(riding, choose, DIVIDED)
        units = Units(phase.facts, phase.schedule, Names(RESERVED))
        most = max(chains(phase.facts, rider, phase.schedule) for rider in riders)
        if phase.small:
            # one total for each block: no thread waits for a turn
            each = sum(-(-_partial_bytes(facts, rider) // LINE) * LINE for rider in riders)
            most = min(most, max(EACH_BYTES // each, 1))
        else:
            most = max(most, BLOCKS)
        for rider in riders:
            if rider.op == "prod":
                most = min(most, product_blocks(nest, rider))
        if sum(_partial_bytes(facts, rider) for rider in riders) > LARGE_BYTES:
            most = min(most, LARGE_BLOCKS)
        if choose is not None:
            most = questions.partials(choose, most)
        phase.blocks = units.blocks(most)
        lanes = phase.schedule.lanes
        arrays: dict[str, Array] = {}
        for rider in riders:
            dtype = compute_dtype(rider.expression.dtype)
            axes = [a for a in range(len(nest.axes)) if a in rider.axes]
            lane = phase.schedule.lane
            if lane in axes and lane is not None:
                axes = [*(a for a in axes if a != lane), lane]
            sizes = [(axis, nest.axes[axis].size) for axis in axes]
            strides, size = dense(sizes, len(nest.axes), lanes)
            base = Base(rider.name, dtype, writable=True, padded=True)
            arrays[rider.name] = Array(base, Address(strides), size)
        phase.totals = totals_of(phase.blocks, arrays.values())
        for rider in riders:
            array = arrays[rider.name]
            width = total_width(array) if phase.totals > 1 else array.size
            name = self.workspace.reserve(
                rider.name, array.base.dtype, multiply(width, phase.totals)
            )
            offset = self.workspace.places[name][1]
            phase.riders[rider.name] = Rider(rider, array, offset, name, phase.totals, width)
        if phase.totals < phase.blocks:
            words = TURN_WORDS * phase.totals
            phase.turn = self.workspace.places[self.workspace.reserve("turn", "int64", words)][1]
        self.order.append(phase)
        return phase

    def _combine(
        self,
        facts: Facts,
        phase: NestPhase,
        axes: tuple[int, ...],
        members: list[Reduction],
        mine: list[Statement],
        totals: set[str],
        reads: dict[str, Read],
    ) -> None:
        """Add a nest that combines the totals, in order, and computes what depends only on them."""
        nest = facts.nest
        statements: list[Statement] = []
        for rider in members:
            made = phase.riders[rider.name]
            strides = (made.width, *(made.array.address.strides[axis] for axis in axes))
            total: Expression = Read(made.buffer, Address(strides), made.array.base.dtype)
            left = tuple(range(1, 1 + len(axes)))
            if phase.totals > 1:
                statements.append(replace(rider, expression=total, over=(0,), axes=left))
                continue
            if compute_dtype(rider.dtype) != total.dtype:
                total = convert(total, rider.dtype)
            statements.append(Let(rider.name, rider.dtype, total, left, rider.origins))
        statements += behind_a_leading_axis(mine, nest, axes)
        lead = Axis(phase.totals, phase.totals > 1)
        sizes = (lead, *(Axis(nest.axes[axis].size) for axis in axes))
        defined: list[Result] = [*members, *(s for s in mine if isinstance(s, Let))]
        kept = [nest.axes[axis].size for axis in axes]
        for result in defined:
            if result.name in totals:
                write, read = self._total(result, kept, axes, len(nest.axes), 1)
                statements.append(write)
                reads[result.name] = read
        self.add(Nest(nest.name, sizes, tuple(statements), nest.label), spread=False)

    def _total(
        self,
        statement: Reduction | Let,
        sizes: list[Size],
        axes: tuple[int, ...],
        rank: int,
        lead: int,
    ) -> tuple[Write, Read]:
        """The store of a complete result in the workspace, and the read of a later phase."""
        strides, size = dense(list(zip(axes, sizes, strict=True)), rank, 1)
        dtype = compute_dtype(statement.dtype)
        name = self.workspace.reserve(statement.name, dtype, size)
        mine = Address((*(0,) * lead, *(strides[axis] for axis in axes)))
        local = Local(statement.name, statement.dtype)
        spot = tuple(range(lead, lead + len(axes)))
        return Write(name, dtype, mine, local, spot), Read(name, Address(strides), dtype)

    def _apart(
        self,
        facts: Facts,
        rider: Reduction,
        mine: list[Statement],
        totals: set[str],
        reads: dict[str, Read],
    ) -> None:
        """Put a rider that does not ride in a separate nest, in which it is a main reduction."""
        nest = facts.nest
        axes = tuple(sorted(rider.axes))
        domain = facts.domain(rider)
        statements = [*_needed(facts, [rider]), *mine]
        results: list[Result] = [rider, *(s for s in mine if isinstance(s, Let))]
        for result in results:
            if result.name in totals:
                sizes = [nest.axes[axis].size for axis in axes]
                write, read = self._total(result, sizes, axes, len(nest.axes), 0)
                strides = [read.address.strides[axis] for axis in range(len(nest.axes))]
                write = replace(write, address=Address(tuple(strides)), axes=axes)
                statements.append(write)
                reads[result.name] = read
        flags = tuple(Axis(a.size, i in rider.over) for i, a in enumerate(nest.axes))
        whole = replace(nest, axes=flags, statements=tuple(statements))
        groups = [[axis] for axis in range(len(nest.axes)) if axis in domain]
        self.add(regroup(whole, groups) if groups else whole, spread=False)


def _depending(facts: Facts, names: set[str]) -> set[int]:
    """Ids of the statements that depend on one of these values."""
    found: set[int] = set()
    reached = set(names)
    for statement in facts.nest.statements:
        if any(name in reached for name in facts.locals_in(statement)):
            found.add(id(statement))
            if not isinstance(statement, Write):
                reached.add(statement.name)
    return found


def _needed(
    facts: Facts, roots: Iterable[Statement], without: Collection[str] = ()
) -> list[Statement]:
    """The statements and everything that they read, in order, except what is read only through the
    values `without`."""
    roots = list(roots)
    behind = facts.behind(roots, lambda s: s.name not in without)
    wanted = {id(s) for s in (*roots, *behind)}
    used: set[str] = set()
    kept: list[Statement] = []
    for statement in reversed(facts.nest.statements):
        if id(statement) in wanted and (not isinstance(statement, Let) or statement.name in used):
            kept.append(statement)
            used.update(facts.locals_in(statement))
    return list(reversed(kept))


def _reading(facts: Facts, rest: list[Statement], reads: dict[str, Read]) -> Nest:
    """The remaining statements, with the results of earlier phases read from the workspace."""

    def leaf(part: Expression) -> Expression:
        if isinstance(part, Local) and part.name in reads:
            return reads[part.name]
        return part

    wanted = {id(s) for s in rest}
    statements = tuple(
        rewritten(s, leaf)
        for s in facts.nest.statements
        if id(s) in wanted or (not isinstance(s, Write) and s.name not in reads)
    )
    nest = replace(facts.nest, statements=statements)
    other = Facts(nest)
    roots = [rewritten(s, leaf) for s in rest]
    chosen = {s for s in roots if not isinstance(s, Let)}
    return replace(nest, statements=tuple(_needed(other, [s for s in statements if s in chosen])))


def _inner_only(facts: Facts, rider: Reduction, choose: NestChooser | None) -> bool:
    """Whether a rider should run in a separate nest, because its partial results would exceed the
    workspace. Never if it accumulates per-row results, which only the loop over the rows has."""
    size = _partial_bytes(facts, rider)
    rows = any(s is not rider and not isinstance(s, Let) for s in _needed(facts, [rider]))
    alone = size > 1 << 18 and not rows
    return alone if choose is None else questions.rides(choose, rider.name, size, alone, rows)


def _partial_bytes(facts: Facts, rider: Reduction) -> int:
    """Bytes of one block's partial results."""
    size = BYTES[compute_dtype(rider.expression.dtype)]
    for axis in rider.axes:
        size *= estimate(facts.nest.axes[axis].size)
    return size


def is_small(facts: Facts, least: int) -> bool:
    """Whether the work is certainly less than `least`."""
    work = work_of(facts)
    return work is not None and work < least


def weight_of(facts: Facts) -> int:
    """Instructions for an element, or the time in which as many 4-byte elements are moved. Vectors
    of 8-byte elements have half the lanes, and move twice the memory."""
    return facts.element_weight() * max(facts.widest() // 4, 1) + facts.gaps() // 4


def work_of(facts: Facts) -> int | None:
    """Elements times instructions; None if a size is symbolic."""
    work = weight_of(facts)
    for axis in facts.nest.axes:
        if not isinstance(axis.size, int):
            return None
        work *= max(axis.size, 1)
    return work


def _spreads(facts: Facts, isa: Isa, choose: NestChooser | None) -> bool:
    """Whether to split the rows of main reductions into blocks."""
    mains = [s for s in facts.nest.statements if facts.is_main(s)]
    if not mains or any(isinstance(s, Reduction) and s.op in ARG for s in mains):
        return False
    few = _few_results(facts, isa, mains)
    if choose is None:
        return few
    scans = any(isinstance(s, ScanAlong) for s in facts.nest.statements)
    return questions.spread(choose, few, scans)


def _few_results(facts: Facts, isa: Isa, mains: list[Statement]) -> bool:
    """Whether threads should share each reduction: few results, of many elements each."""
    if is_small(facts, DIVIDED):
        return False
    kept = long = 1
    for axis in facts.nest.axes:
        if axis.reduced:
            long *= estimate(axis.size) if isinstance(axis.size, int) else LONG_ROWS
        else:
            kept *= estimate(axis.size)
    if kept < 4:
        return long >= LONG_ROWS // 2
    plan = schedule(facts, isa)
    if plan.lane is None or plan.lane in facts.reduced or kept > 1 << 14:
        return False
    one_walk = not any(
        facts.domain(s) & facts.reduced
        for s in facts.nest.statements
        if id(s) in _depending(facts, {m.name for m in mains if isinstance(m, Reduction)})
    )
    narrow = kept < UNITS * COLUMNS or long >= BLOCKS * EACH_ROWS
    return long >= 64 and narrow and (one_walk or kept < 4 * COLUMNS) and kept * long >= LONG_ROWS
