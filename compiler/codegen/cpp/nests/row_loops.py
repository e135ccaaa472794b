"""The loops of a nest: units, outer axes, the passes of a row, and the steps along the lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcw.compiler.codegen.choices import NestChooser
from tcw.compiler.codegen.cpp.nests import questions
from tcw.compiler.codegen.cpp.nests.accumulators import Accumulator, Accumulators
from tcw.compiler.codegen.cpp.nests.code import Code, Scope
from tcw.compiler.codegen.cpp.nests.comments import Comments
from tcw.compiler.codegen.cpp.nests.passes import Pass, Passes
from tcw.compiler.codegen.cpp.nests.riders import CHAIN, PRODUCT_STEPS, Blocks, Rider
from tcw.compiler.codegen.cpp.nests.scans import Scans
from tcw.compiler.codegen.cpp.nests.schedule import STEPS, Schedule
from tcw.compiler.codegen.cpp.nests.scratch import RowArrays, Scratch
from tcw.compiler.codegen.cpp.nests.side_by_side import (
    COLUMN_REGISTERS,
    HEAVY,
    rows_at_once,
    rows_loop,
)
from tcw.compiler.codegen.cpp.nests.transpose import drain_blocks, fill_blocks, tiles
from tcw.compiler.codegen.cpp.nests.units import Units
from tcw.compiler.codegen.cpp.nests.vector_values import Base, Values
from tcw.compiler.codegen.cpp.nests.writes import write_all
from tcw.compiler.codegen.cpp.vocabulary import Vocabulary
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.names import Names
from tcw.compiler.loops.dtypes import FLOATS
from tcw.compiler.loops.expressions import Local
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import Reduction, ScanAlong, Write
from tcw.compiler.loops.sizes import Size, c_expression

REGISTERS = 12
"""Maximum number of accumulators that a pass holds in registers at once."""


@dataclass
class Loops:
    """Emits one nest: `rows(begin, end)` emits the loops over a range of its units."""

    facts: Facts
    schedule: Schedule
    passes: Passes
    names: Names
    bases: dict[str, Base]
    vocabulary: Vocabulary
    comments: Comments
    riders: Mapping[str, Rider]
    turn: Size | None = None
    """Offset in the workspace of the turns: which block may add to each of the riders' totals."""
    choose: NestChooser | None = None

    def rows(self, units: Units, begin: str, end: str) -> Code:
        """The body of the function: all loops from unit `begin` to `end`."""
        plan = self.schedule
        self.scalar = self.vocabulary.lanes(1)
        self.vector = self.vocabulary.lanes(self.schedule.lanes)
        self.values = Values(self.facts, self.names, self.bases, self.schedule.lane)
        self.scratch = Scratch(self.names, self.vocabulary)
        self.units = units
        self.arrays = RowArrays(self.facts, self.schedule, self.scratch, units.chunk)
        self.scans = Scans(self.values, self.arrays)
        self.accumulators = Accumulators(self.values, self.arrays, self.riders)
        root, inner = Scope(None, self.scalar), Code()
        for walk in self.passes.before:
            self._pass(walk, root)
        holder = run = root
        own = units.own()
        if self.riders:
            holder = run = Scope(root, self.scalar)
            if units.run:
                run = Scope(holder, self.scalar, {axis: own.pop(axis) for axis in plan.runs()})
                run.code.extend(units.run_head())
        unit = Scope(run, self.scalar, own, partial=units.partial())
        if run is holder:
            unit.code.extend(units.head)
        kept = plan.outer[plan.units : len(plan.outer) - len(plan.joined)]
        opened = units.axis_loops(kept, unit)
        body = opened[-1][0] if opened else unit
        if self.riders:
            fixed = frozenset(plan.outer[: plan.units])
            levels = [(holder, frozenset[int]()), (run, frozenset(plan.runs())), (unit, fixed)]
            for child, _ in opened:
                levels.append((child, levels[-1][1] | child.own.keys()))
            self.accumulators.open_block(levels)
        if plan.blocks:
            opened += self._blocks(body)
            opened += units.axis_loops(plan.joined, opened[-1][0])
            body = opened[-1][0]
        for walk in self.passes.walks:
            self._pass(walk, body)
        for child, header in reversed(opened):
            assert child.parent is not None
            self.accumulators.close_level(child)
            if header:
                child.parent.code.loop(header, child.code)
            else:
                drain_blocks(self.values, units, self.arrays, child)
                child.parent.code.extend(child.code)
        if self.riders:
            turn = None if self.turn is None else "turn"
            blocks = Blocks(self.values, self.arrays, self.riders)
            blocks.prepare(holder, turn)
            units.block_head(holder.code)
            self.accumulators.close_level(unit)
            if run is holder:
                bounds = (units.name, "unit_begin", "unit_end")
                self._rows_loop(holder, unit, bounds, not opened)
            else:
                assert units.run
                self._rows_loop(run, unit, units.run, not opened)
                self.accumulators.close_level(run)
                holder.code.loop(units.runs_loop(), run.code)
            self.accumulators.close_level(holder)
            blocks.close(holder, turn)
            if self.turn is not None:
                inner.add(f"long* turn = (long*)(workspace + {c_expression(self.turn)});")
            inner.loop(units.block_loop(begin, end, dealt=self.turn is not None), holder.code)
        else:
            header = units.loop(begin, end)
            if header:
                inner.loop(header, unit.code)
            else:
                inner.extend(unit.code)
        whole = Code()
        whole.extend(self.scratch.head)
        whole.extend(root.code)
        whole.extend(inner)
        whole.extend(self.scratch.foot)
        return whole

    def _rows_loop(
        self, block: Scope, unit: Scope, bounds: tuple[str, str, str], alone: bool
    ) -> None:
        """The loop over units that add to the same sums. `alone`: a unit is one row."""
        effects = [effect for walk in self.passes.walks for effect in walk.effects]
        weight = sum(self.facts.expression_weight(effect.expression) for effect in effects)
        rows = rows_at_once(self.accumulators.of_columns(block), weight) if alone else 1
        rows_loop(self.accumulators, block, unit.code, bounds, rows)

    # Passes

    def _pass(self, walk: Pass, scope: Scope) -> None:
        self.comments.above(scope.code, walk, self.passes.needs(walk))
        if self.schedule.tile is not None and not self.schedule.blocks:
            band = Scope(scope, self.scalar)
            tiles(self.values, self.units, self.arrays, band, walk, self._body)
            scope.code.extend(band.code)
            return
        inside = Scope(scope, self.scalar)
        steps = self._steps(walk)
        columns = self._columns(walk)
        accumulators = self.accumulators.begin(walk, scope, columns)
        for one in accumulators:
            if one.statement.name in self.riders:
                one.guard = self.units.guard(self.facts.domain(one.statement))
        self.scans.fill(walk, scope)
        loops = [axis for axis in self.schedule.inner if axis in walk.axes]
        opened = self.units.axis_loops(loops, inside, walk.backwards)
        current = opened[-1][0] if opened else inside
        self._open(accumulators, scope, opened, steps, columns)
        chained, chain_axis, span = self._chains(walk, accumulators, loops, scope, steps)
        for accumulator in chained:
            self.accumulators.open_chain(accumulator)
        if self.schedule.lane is not None and self.schedule.lane in walk.axes:
            self._lane_loop(walk, current, accumulators, steps)
        else:
            self._body(walk, current, accumulators, 0)
        for child, header in reversed(opened):
            self._close(accumulators, child)
            assert child.parent is not None
            if chain_axis is not None and chain_axis in child.own:
                self._spans(child.parent, child.code, chain_axis, chained, span)
            else:
                child.parent.code.loop(header, child.code)
        if opened or (self.schedule.lane in walk.axes and self.schedule.lane is not None):
            scope.code.enclose("", inside.code)
        else:
            scope.code.extend(inside.code)
            scope.memo.update(inside.memo)
        self._close(accumulators, scope)
        self.accumulators.finish(accumulators, scope)
        for name in walk.keeps:
            array = self.arrays.kept[name]
            self.values.keep(name, scope, array.base, array.address)
        for name, read in self.passes.reload.items():
            if any(isinstance(e, Write) and e.buffer == read.buffer for e in walk.effects):
                self.values.reload(name, read)

    def _blocks(self, scope: Scope) -> list[tuple[Scope, str]]:
        """Transpose a unit's tiles into blocks. Returns the scopes of the unit or band, and of one
        row if it is a band of them."""
        axis = self.schedule.banded
        own = {} if axis is None else {axis: (self.units.band, 1)}
        band = Scope(scope, self.scalar, own, partial=axis)
        fill_blocks(self.values, self.units, self.arrays, band)
        if axis is None:
            return [(band, "")]
        name = self.units.axis_names[axis]
        row = Scope(band, self.scalar, {axis: (name, 1)})
        rows = self.units.band_rows()
        return [(band, ""), (row, f"for (long {name} = 0; {name} < {rows}; {name}++)")]

    def _open(
        self,
        found: list[Accumulator],
        scope: Scope,
        opened: list[tuple[Scope, str]],
        steps: int,
        columns: int,
    ) -> None:
        """Declare register accumulators in the scopes where they are reset."""
        for accumulator in found:
            holder = scope
            for child, _ in opened:
                if set(child.own) & accumulator.row_axes:
                    holder = child
            self.accumulators.declare(accumulator, holder, steps, columns)

    def _chains(
        self, walk: Pass, found: list[Accumulator], loops: list[int], scope: Scope, steps: int
    ) -> tuple[list[Accumulator], int | None, int]:
        """The sums that a loop of a pass is to add in several chains, that loop's axis, and its
        steps in each chain. Unknown sizes count as large."""
        chained, at, span = [], None, 0
        for accumulator in found:
            inside = self._lane_additions(accumulator, steps)
            if not self.accumulators.rounds(accumulator) or (
                accumulator.names and accumulator.holder is not scope
            ):
                continue
            if inside is None or inside > CHAIN:
                continue
            place, total = None, inside
            for axis in reversed(loops):
                size = self.facts.nest.axes[axis].size
                if axis not in accumulator.statement.over:
                    continue
                if not isinstance(size, int) or total * size > 2 * CHAIN:
                    place = axis
                    break
                total *= size
            if place is None or place in walk.backwards or at not in (None, place):
                continue
            if accumulator.row_axes & set(loops[: loops.index(place)]):
                continue
            chained.append(accumulator)
            at, each = place, max(CHAIN // total, 1)
            span = min(span, each) if span else each
        return chained, at, span

    def _lane_additions(self, accumulator: Accumulator, steps: int) -> int | None:
        """How often the lane loop adds to the same element; None if unknown."""
        if not accumulator.names or self.schedule.lane not in accumulator.statement.over:
            return 1
        width = self.units.lane_width()
        return None if width is None else -(-width // (self.schedule.lanes * steps))

    def _spans(
        self, scope: Scope, body: Code, axis: int, chained: list[Accumulator], span: int
    ) -> None:
        """The loop over an axis, `span` positions at a time."""
        name, size = self.units.axis_names[axis], c_expression(self.facts.nest.axes[axis].size)
        start, end = self.names.new(f"{name}_start"), self.names.new(f"{name}_end")
        outside, scope.code = scope.code, Code()
        scope.code.add(f"const long {end} = {start} + {span} < {size} ? {start} + {span} : {size};")
        for accumulator in chained:
            self.accumulators.begin_chain(accumulator, scope)
        scope.code.loop(f"for (long {name} = {start}; {name} < {end}; {name}++)", body)
        for one in chained:
            self.accumulators.end_chain(one, scope)
        outside.loop(f"for (long {start} = 0; {start} < {size}; {start} += {span})", scope.code)
        scope.code = outside

    def _close(self, found: list[Accumulator], scope: Scope) -> None:
        for accumulator in found:
            if accumulator.holder is scope:
                self.accumulators.flush(accumulator, scope)

    def _steps(self, walk: Pass) -> int:
        """Vectors per step: several independent chains for cheap passes, one for heavy passes."""
        lane = self.schedule.lane
        if lane is None or lane not in walk.axes or self.schedule.lanes == 1:
            return 1
        width = self.units.lane_width()
        if width is not None and self._columns(walk):
            return max(width // self.schedule.lanes, 1)
        steps = self._cheap_steps(walk, lane)
        if self.choose is not None and self.schedule.tile is None:
            return questions.steps(self.choose, self.facts, walk.effects, lane, steps)
        return steps

    def _columns(self, walk: Pass) -> int:
        """The number of vectors of a few columns, the last of which may be partial, if sums or
        scans of the columns run along an axis around them; else 0. One step takes all whole
        vectors. Sums are registers, and the compiler keeps in registers what scans carry."""
        lane = self.schedule.lane
        if lane is None or lane not in walk.axes or self.schedule.lanes == 1:
            return 0
        carried = [
            effect
            for effect in walk.effects
            if (isinstance(effect, Reduction) and lane in effect.axes)
            or (isinstance(effect, ScanAlong) and effect.axis != lane)
        ]
        around = any(axis in walk.axes for axis in self.schedule.inner)
        around = around or bool(self.riders)
        width = self.units.lane_width()
        if not carried or not around or width is None:
            return 0
        lanes = self.schedule.lanes
        sums = sum(isinstance(effect, (Reduction, ScanAlong)) for effect in walk.effects)
        vectors = -(-width // lanes)
        return vectors if vectors * sums <= COLUMN_REGISTERS else 0

    def _cheap_steps(self, walk: Pass, lane: int) -> int:
        if any(isinstance(effect, ScanAlong) and effect.axis == lane for effect in walk.effects):
            return 1
        reductions = [effect for effect in walk.effects if isinstance(effect, Reduction)]
        if any(effect.op in ARG for effect in reductions):
            return 1
        registers = [r for r in reductions if lane not in r.axes]
        products = any(r.op == "prod" and r.dtype in FLOATS for r in registers)
        steps = PRODUCT_STEPS if products else STEPS
        while registers and steps > 1 and steps * len(registers) > REGISTERS:
            steps //= 2
        weight = sum(self.facts.expression_weight(e.expression) for e in walk.effects)
        while steps > 1 and weight * steps > HEAVY:
            steps //= 2
        size = self.units.lane_size()
        while steps > 1 and isinstance(size, int) and size < 2 * steps * self.schedule.lanes:
            steps //= 2
        return steps

    # Lanes

    def _lane_loop(self, walk: Pass, scope: Scope, found: list[Accumulator], steps: int) -> None:
        lanes = self.schedule.lanes
        size = self.units.lane_size()
        bound, name = self.units.lane_bound(), self.units.lane_name
        self.scans.begin(walk, scope)
        if self.schedule.lane in walk.backwards:
            scope = self._from_the_end(scope)
        if lanes == 1:
            body = self._lane_body(walk, scope, found, name, 0, None)
            self._main_loop(scope, body, 1, False, found)
            return self._end_lane(scope)
        main, single, tail = _parts(size, lanes, steps)
        width = self.units.lane_width()
        once = width is not None and width // lanes == steps
        single = single and not once
        if tail and isinstance(size, int) and size < lanes:
            scope.code.extend(self._lane_body(walk, scope, found, "0", 0, str(size)))
            return self._end_lane(scope)
        if once and steps == 1:
            scope.code.enclose("", self._lane_body(walk, scope, found, "0", 0, None))
        elif steps == 1:
            body = self._lane_body(walk, scope, found, name, 0, None) if main else Code()
            if main or not tail:
                self._main_loop(scope, body, 1, bool(tail), found)
            else:
                scope.code.add(f"long {name} = 0;")
        else:
            parameters = [f"long {name}"]
            for accumulator in found:
                parameters += accumulator.parameters(self.vector)
            body = self._lane_body(walk, scope, found, name, None, None)
            scope.code.enclose(
                f"const auto step = [&]({', '.join(parameters)}) __attribute__((always_inline))",
                body,
                "};",
            )
            calls = Code()
            for place in range(steps):
                at = name if place == 0 else f"{name} + {place * lanes}"
                at = str(place * lanes) if once else at
                calls.add(_step(at, found, place))
            if once:
                scope.code.extend(calls)
            else:
                self._main_loop(scope, calls, steps, bool(single or tail), found)
            if single:
                header = f"for (; {name} + {lanes} <= {bound}; {name} += {lanes})"
                code = Code()
                code.add(_step(name, found, 0))
                scope.code.loop(header, code)
        if tail and once:
            at, left = str(steps * lanes), str((width or 0) % lanes)
            scope.code.enclose("", self._lane_body(walk, scope, found, at, steps, left))
        elif tail:
            body = Code()
            body.add(f"const long count = {bound} - {name};")
            body.extend(self._lane_body(walk, scope, found, name, 0, "count"))
            scope.code.enclose(f"if ({name} < {bound})", body)
        return self._end_lane(scope)

    def _main_loop(
        self, scope: Scope, body: Code, steps: int, more: bool, found: list[Accumulator]
    ) -> None:
        """The loop over whole steps of the lane axis. `more`: other loops take the elements after
        them. Long sums are added in several chains."""
        name, bound = self.units.lane_name, self.units.lane_bound()
        width = steps * self.schedule.lanes
        chained = []
        for accumulator in found:
            additions = self._lane_additions(accumulator, steps)
            many = additions is None or additions > CHAIN
            if many and accumulator.names and self.accumulators.rounds(accumulator):
                self.accumulators.open_chain(accumulator)
                chained.append(accumulator)
        start = "" if more else f"long {name} = 0"
        if more:
            scope.code.add(f"long {name} = 0;")
        end, outside = bound, scope.code
        if chained:
            span, end = self.names.new(f"{name}_start"), self.names.new(f"{name}_end")
            length = CHAIN * width
            scope.code = Code()
            scope.code.add(
                f"const long {end} = {span} + {length} < {bound} ? {span} + {length} : {bound};"
            )
            start = start and f"long {name} = {span}"
        until = f"{name} + {width} <= {end}" if more else f"{name} < {end}"
        onward = f"{name} += {width}" if width > 1 else f"{name}++"
        scope.code.loop(f"for ({start}; {until}; {onward})", body)
        if chained:
            others, scope.code = scope.code, Code()
            for one in chained:
                self.accumulators.end_chain(one, scope)
            others.enclose(f"if ({end} < {bound})", scope.code)
            scope.code = others
            header = f"for (long {span} = 0; {span} < {bound}; {span} += {length})"
            outside.loop(header, scope.code)
            scope.code = outside

    def _from_the_end(self, scope: Scope) -> Scope:
        """A scope in which the lane axis runs backwards from its last element."""
        lane = self.schedule.lane
        assert lane is not None
        size = c_expression(self.facts.nest.axes[lane].size)
        return Scope(scope, self.scalar, {lane: (f"({size} - 1)", 1)}, partial=lane, flipped=True)

    def _end_lane(self, scope: Scope) -> None:
        if scope.partial is not None and scope.parent is not None:
            scope.parent.code.extend(scope.code)

    def _lane_body(
        self,
        walk: Pass,
        scope: Scope,
        found: list[Accumulator],
        name: str,
        place: int | None,
        count: str | None,
    ) -> Code:
        lane = self.schedule.lane
        assert lane is not None
        sign = -1 if lane in walk.backwards else 1
        inner = Scope(
            scope, self.vector, {lane: (name, sign)}, is_lane=self.schedule.lanes > 1, count=count
        )
        self._body(walk, inner, found, place)
        return inner.code

    def _body(self, walk: Pass, scope: Scope, found: list[Accumulator], place: int | None) -> None:
        """The work of a pass for one element, or for the elements of one vector."""
        for effect in walk.effects:
            if isinstance(effect, ScanAlong):
                self.scans.scan(effect, scope)
        for name in walk.keeps:
            array = self.arrays.keep(name)
            statement = self.facts.named[name]
            value = self.values.of(Local(name, statement.dtype), scope)
            scope.code.add(self.values.store(array.base, array.address, value, scope))
        for accumulator in found:
            self.accumulators.update(accumulator, scope, place)
        writes = [effect for effect in walk.effects if isinstance(effect, Write)]
        write_all(writes, scope, self.values, lambda w: self.units.guard(self.facts.domain(w)))


def _parts(size: Size, lanes: int, steps: int) -> tuple[bool, bool, bool]:
    """Whether there are whole steps, single vectors after them, and a remainder."""
    if not isinstance(size, int):
        return True, steps > 1, True
    left = size % (steps * lanes)
    return size >= steps * lanes, steps > 1 and left >= lanes, bool(left % lanes)


def _step(at: str, found: list[Accumulator], place: int) -> str:
    arguments = [at]
    for accumulator in found:
        arguments += accumulator.arguments(place)
    return f"step({', '.join(arguments)});"
