"""Where reductions and scans add up: in registers, or in arrays as long as what is left over.

A reduction whose result is one number for a row adds up in some vectors (independent chains) and
ends across their lanes. One with a result for each lane, or for each step of an inner loop, adds up
in an array. A rider adds up in an array for each block of units and then, block after block, in one
of a few totals in the workspace, which a later phase adds up; where they are small each block has a
total of its own. Blocks and totals are fixed by the sizes alone, so that any number of threads
gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compiler.codegen.cpp.nests.code import Code, Scope
from compiler.codegen.cpp.nests.facts import Facts
from compiler.codegen.cpp.nests.names import base_name
from compiler.codegen.cpp.nests.online import has_online_sum
from compiler.codegen.cpp.nests.passes import Pass
from compiler.codegen.cpp.nests.quick import quick_max
from compiler.codegen.cpp.nests.schedule import Schedule
from compiler.codegen.cpp.nests.scratch import Array, Scratch
from compiler.codegen.cpp.nests.values import Values
from compiler.codegen.cpp.vocabulary import Lanes
from compiler.loops.dtypes import compute_dtype
from compiler.loops.expressions import Local
from compiler.loops.nest import Reduction, ScanAlong
from compiler.loops.sizes import Size, c_expression, multiply

LARGEST = {"float32": 3.4028234663852886e38}
ROOM = 2.0
"""The top of an `exp_sum` is raised to so much above what is there, so that it is raised rarely,
also by a row that ascends. With more, the difference to the top would lose bits."""

TURN_WORDS = 8
"""Numbers from one turn to the next: a cache line."""

ARG = {"argmax": "max", "argmin": "min"}


@dataclass(frozen=True, slots=True)
class Rider:
    """A reduction that is complete only after the nest: an array in the workspace."""

    statement: Reduction
    array: Array
    offset: Size
    """Bytes into the workspace."""
    buffer: str
    """Its name in the workspace."""
    totals: int
    """So many arrays lie there; block b adds to number b % totals."""
    width: Size
    """Elements from one to the next."""


@dataclass(slots=True)
class Accumulator:
    """One reduction of a pass."""

    statement: Reduction
    op: str
    dtype: str
    row_axes: frozenset[int]
    """Axes of the row that the result varies over."""
    array: Array | None = None
    index_array: Array | None = None
    names: list[str] = field(default_factory=list)
    index_names: list[str] = field(default_factory=list)
    holder: Scope | None = None
    """The scope in which its registers start anew, if it has any."""
    guard: str = ""
    """A condition that is true once for each element of its domain, where the loops have more."""
    tops: list[str] = field(default_factory=list)
    """Of an `exp_sum`: what each of its registers is relative to, the same in every lane."""

    def parameters(self, lanes: Lanes) -> list[str]:
        """Of a step's function: the registers that it adds to."""
        chains = (names for names in (self.names, self.tops) if names)
        return [f"{lanes.type(self.dtype)}& {within(names, None)}" for names in chains]

    def arguments(self, place: int) -> list[str]:
        return [names[place] for names in (self.names, self.tops) if names]


def within(names: list[str], place: int | None) -> str:
    """The register of a step; None: as the step's function calls it."""
    return f"{names[0].removesuffix('_0')}_" if place is None else names[place]


class Accumulators:
    """Declares, updates and completes them."""

    def __init__(
        self,
        facts: Facts,
        schedule: Schedule,
        values: Values,
        scratch: Scratch,
        riders: Mapping[str, Rider],
        chunk: Size | None,
    ) -> None:
        self.facts = facts
        self.schedule = schedule
        self.values = values
        self.scratch = scratch
        self.riders = riders
        self.chunk = chunk
        self.kept: dict[str, Array] = {}
        self.vector = scratch.vocabulary.lanes(schedule.lanes)
        self.scalar = scratch.vocabulary.lanes(1)
        self.maxima = {
            s.expression: s.name
            for s in facts.nest.statements
            if isinstance(s, Reduction) and s.op == "max"
        }
        self._carries: dict[str, Array | str] = {}
        self._block: list[Accumulator] = []
        self._block_scope: Scope | None = None

    # Arrays

    def _array(self, wanted: str, dtype: str, axes: frozenset[int]) -> Array:
        nest = self.facts.nest
        sizes: list[tuple[int, Size]] = []
        for axis in self.schedule.row():
            if axis in axes:
                size = nest.axes[axis].size
                if axis == self.schedule.lane and self.chunk is not None:
                    size = self.chunk
                sizes.append((axis, size))
        return self.scratch.array(wanted, dtype, sizes, len(nest.axes), self.schedule.lanes)

    def keep(self, name: str) -> Array:
        """The row buffer of a value."""
        if name not in self.kept:
            statement = self.facts.named[name]
            axes = self.facts.axes(Local(name, statement.dtype))
            self.kept[name] = self._array(f"{base_name(name)}_row", statement.dtype, axes)
        return self.kept[name]

    def _fill(self, array: Array, start: Callable[[Lanes], str], scope: Scope) -> None:
        """Fill an array, vector by vector where it has a result for each lane."""
        lane, stored = self.schedule.lane, array.base.dtype
        along = lane is not None and array.address.strides[lane] != 0
        lanes = self.vector if along else self.scalar
        identity = start(lanes)
        size, loop = c_expression(array.size), Code()
        pointer = f"{array.base.name} + i"
        if isinstance(array.size, int) and array.size % lanes.count == 0:
            loop.add(lanes.store(stored, pointer, identity))
        else:
            left = f"{size} - i < {lanes.count} ? {size} - i : {lanes.count}"
            loop.add(lanes.store_partial(stored, pointer, identity, left))
        scope.code.enclose(f"for (long i = 0; i < {size}; i += {lanes.count})", loop)

    def _fill_identity(self, array: Array, op: str, scope: Scope) -> None:
        dtype = array.base.dtype
        self._fill(array, lambda lanes: lanes.identity(ARG.get(op, op), dtype), scope)

    # Reductions

    def begin(self, walk: Pass, scope: Scope) -> list[Accumulator]:
        """The accumulators of a pass; arrays are filled here."""
        found: list[Accumulator] = []
        row = frozenset(self.schedule.row())
        for statement in walk.effects:
            if not isinstance(statement, Reduction):
                continue
            dtype = compute_dtype(statement.expression.dtype)
            accumulator = Accumulator(
                statement, self._op(statement), dtype, frozenset(statement.axes) & row
            )
            rider = self.riders.get(statement.name)
            if rider:
                accumulator.array = rider.array
            elif accumulator.row_axes:
                array = self._array(
                    f"{base_name(statement.name)}_sums", dtype, accumulator.row_axes
                )
                accumulator.array = array
                self._fill_identity(array, statement.op, scope)
                if statement.op in ARG:
                    index = self._index_dtype(accumulator)
                    indices = self._array(
                        f"{base_name(statement.name)}_at", index, accumulator.row_axes
                    )
                    accumulator.index_array = indices
                    self._fill(indices, lambda lanes: lanes.constant(0, lanes.index_dtype), scope)
            found.append(accumulator)
        return found

    def _index_dtype(self, accumulator: Accumulator) -> str:
        return self.vector.index_dtype

    def _op(self, statement: Reduction) -> str:
        """The operation; one that may lose NaN where all that it feeds carries it on."""
        if statement.op == "exp_sum":
            return "sum"
        quick = quick_max(self.facts, statement) or has_online_sum(self.facts, statement)
        return "max_quick" if quick else statement.op

    def declare(self, accumulator: Accumulator, holder: Scope, steps: int) -> None:
        """Registers in the scope where they start anew, unless each lane has its own result."""
        lane = self.schedule.lane
        if accumulator.array and (lane is None or lane in accumulator.row_axes):
            return
        domain = self.facts.domain(accumulator.statement)
        rides = accumulator.statement.name in self.riders
        if rides and not accumulator.statement.axes and self._block_scope is not None:
            holder = self._block_scope
            self._block.append(accumulator)
        if accumulator.array and (lane not in domain) and not rides:
            return
        lanes = self.vector if lane is not None and lane in domain else self.scalar
        op, dtype = accumulator.op, accumulator.dtype
        accumulator.holder = holder
        base = self.values.names.family(
            f"{base_name(accumulator.statement.name)}_part", [*map(str, range(steps)), "", "at"]
        )
        kind, start = lanes.type(dtype), lanes.identity(ARG.get(op, op), dtype)
        accumulator.names = [f"{base}_{place}" for place in range(steps)]
        declared = ", ".join(f"{name} = {start}" for name in accumulator.names)
        holder.code.add(f"{kind} {declared};")
        if accumulator.statement.op == "exp_sum":
            accumulator.tops = [f"{base}_{place}_top" for place in range(steps)]
            # finite, so that -inf minus the maximum of nothing but -inf is no NaN
            start = lanes.constant(-LARGEST[dtype], dtype)
            declared = ", ".join(f"{name} = {start}" for name in accumulator.tops)
            holder.code.add(f"{kind} {declared};")
        if op in ARG:
            index = lanes.index_dtype
            name = f"{base}_at"
            accumulator.index_names = [name]
            holder.code.add(f"{lanes.type(index)} {name} = {lanes.iota('0', index)};")

    def update(self, accumulator: Accumulator, scope: Scope, place: int | None) -> None:
        """Add one element, or one vector of them."""
        if accumulator.tops:
            self._update_relative(accumulator, scope, place)
            return
        statement, dtype = accumulator.statement, accumulator.dtype
        value = self.values.of(statement.expression, scope)
        lanes = scope.lanes
        operation = ARG.get(accumulator.op, accumulator.op)
        lane = self.schedule.lane
        across = scope.is_lane and lane not in statement.axes
        if scope.count is not None and across:
            value = lanes.select_lanes(value, lanes.identity(operation, dtype), scope.count, dtype)
        if accumulator.names:
            name = within(accumulator.names, place)
            if accumulator.op in ARG:
                value = self._variable(value, dtype, scope)
                at = self._variable(self._flat_index(statement, scope), lanes.index_dtype, scope)
                text = lanes.arg_update(
                    accumulator.op, name, accumulator.index_names[0], value, at, dtype
                )
                scope.code.add(text, statement.origins)
                return
            text = f"{name} = {lanes.combine(accumulator.op, name, value, dtype)};"
            scope.code.add(_guarded(accumulator.guard, text), statement.origins)
            return
        assert accumulator.array
        self._update_array(accumulator, value, scope)

    def _update_relative(self, accumulator: Accumulator, scope: Scope, place: int | None) -> None:
        """Add exp(x - top); where x is greater, first raise the top and rescale the sum."""
        dtype, lanes = accumulator.dtype, scope.lanes
        value = self.values.of(accumulator.statement.expression, scope)
        if scope.count is not None:
            value = lanes.select_lanes(value, lanes.identity("max", dtype), scope.count, dtype)
        value = self._variable(value, dtype, scope)
        part, top = within(accumulator.names, place), within(accumulator.tops, place)
        greater = lanes.apply("gt", (value, top), (dtype, dtype), "bool")
        raised = self.values.names.new("raised")
        highest = lanes.broadcast(lanes.reduce("max_quick", value, dtype), dtype)
        room = lanes.constant(ROOM, dtype)
        rescale = Code()
        text = lanes.apply("add", (highest, room), (dtype, dtype), dtype)
        rescale.add(f"const {lanes.type(dtype)} {raised} = {text};")
        rescale.add(f"{part} = {part} * {self._power(top, raised, dtype, lanes)};")
        rescale.add(f"{top} = {raised};")
        scope.code.enclose(f"if ({lanes.reduce('any', greater, 'bool')})", rescale)
        text = f"{part} = {part} + {self._power(value, top, dtype, lanes)};"
        scope.code.add(text, accumulator.statement.origins)

    def _power(
        self, value: str, top: str, dtype: str, lanes: Lanes, op: str = "exp_nonpositive"
    ) -> str:
        """exp(value - top), by default of a value that is at most the top."""
        difference = lanes.apply("sub", (value, top), (dtype, dtype), dtype)
        return lanes.apply(op, (difference,), (dtype,), dtype)

    def _update_array(self, accumulator: Accumulator, value: str, scope: Scope) -> None:
        statement, dtype, lanes = accumulator.statement, accumulator.dtype, scope.lanes
        array = accumulator.array
        assert array
        old = self.values.load(array.base, array.address, scope)
        if accumulator.index_array:
            indices = accumulator.index_array
            index_dtype = indices.base.dtype
            value = self._variable(value, dtype, scope)
            at = self._variable(self._flat_index(statement, scope), index_dtype, scope)
            best = self._variable(old, dtype, scope, constant=False)
            old_index = self.values.load(indices.base, indices.address, scope)
            best_index = self._variable(old_index, index_dtype, scope, constant=False)
            scope.code.add(
                lanes.arg_update(accumulator.op, best, best_index, value, at, dtype, index_dtype),
                statement.origins,
            )
            scope.code.add(self.values.store(array.base, array.address, best, scope))
            scope.code.add(self.values.store(indices.base, indices.address, best_index, scope))
            return
        new = lanes.combine(accumulator.op, old, value, dtype)
        text = self.values.store(array.base, array.address, new, scope)
        scope.code.add(_guarded(accumulator.guard, text), statement.origins)

    def _variable(self, text: str, dtype: str, scope: Scope, *, constant: bool = True) -> str:
        if constant and text.isidentifier():
            return text
        name = self.values.names.new("item")
        const = "const " if constant else ""
        scope.code.add(f"{const}{scope.lanes.type(dtype)} {name} = {text};")
        return name

    def _flat_index(self, statement: Reduction, scope: Scope) -> str:
        """Where an element is within the reduced axes."""
        parts: list[str] = []
        width: Size = 1
        for axis in sorted(statement.over, reverse=True):
            text = scope.index(axis)
            if width != 1:
                text = f"({text}) * {c_expression(width)}"
            parts.append(text)
            width = multiply(width, self.facts.nest.axes[axis].size)
        start = " + ".join(parts) or "0"
        lanes = scope.lanes
        if scope.is_lane and self.schedule.lane in statement.over:
            return lanes.iota(start, lanes.index_dtype)
        if scope.is_lane:
            return lanes.broadcast(start, lanes.index_dtype)
        return f"({start})"

    def flush(self, accumulator: Accumulator, scope: Scope) -> None:
        """End the registers of an accumulator that was declared in this scope."""
        if not accumulator.names or accumulator.holder is not scope:
            return
        statement, dtype = accumulator.statement, accumulator.dtype
        lane = self.schedule.lane
        wide = lane is not None and lane in self.facts.domain(statement)
        lanes = self.vector if wide else self.scalar
        name = self.values.name(("total", statement.name), statement.name)
        if accumulator.op in ARG:
            best, at = accumulator.names[0], accumulator.index_names[0]
            index = lanes.arg_reduce(accumulator.op, best, at, dtype)
            if accumulator.array is None:
                scope.code.add(f"const long {name} = {index};", statement.origins)
                return
            top = lanes.reduce(ARG[accumulator.op], best, dtype)
            scope.code.add(f"const {self.scalar.type(dtype)} {name} = {top};")
            scope.code.add(f"const long {name}_at = {index};")
            self.values.names.given.append(f"{name}_at")
            self._flush_index(accumulator, name, scope)
            return
        parts = list(accumulator.names)
        if accumulator.tops:
            maximum = self.maxima[statement.expression]
            most = lanes.broadcast(self.values.name(("total", maximum), maximum), dtype)
            parts = [
                f"{part} * {self._power(top, most, dtype, lanes, 'exp')}"
                for part, top in zip(parts, accumulator.tops, strict=True)
            ]
        while len(parts) > 1:
            parts = [
                lanes.combine(accumulator.op, parts[i], parts[i + 1], dtype)
                for i in range(0, len(parts), 2)
            ]
        total = lanes.reduce(accumulator.op, parts[0], dtype)
        if accumulator.array is None:
            if compute_dtype(statement.dtype) != dtype:
                total = self.scalar.apply("convert", (total,), (dtype,), statement.dtype)
            kind = self.scalar.type(statement.dtype)
            scope.code.add(f"const {kind} {name} = {total};", statement.origins)
            return
        array = accumulator.array
        old = self.values.load(array.base, array.address, scope)
        new = self.scalar.combine(accumulator.op, old, total, dtype)
        scope.code.add(self.values.store(array.base, array.address, new, scope), statement.origins)

    def _flush_index(self, accumulator: Accumulator, name: str, scope: Scope) -> None:
        array, indices = accumulator.array, accumulator.index_array
        assert array
        assert indices
        scalar, dtype = self.scalar, accumulator.dtype
        old = self.values.load(array.base, array.address, scope)
        best = self._variable(old, dtype, scope, constant=False)
        old_index = self.values.load(indices.base, indices.address, scope)
        place = self._variable(f"(long)({old_index})", "int64", scope, constant=False)
        scope.code.add(
            scalar.arg_update(accumulator.op, best, place, name, f"{name}_at", dtype, "int64")
        )
        scope.code.add(self.values.store(array.base, array.address, best, scope))
        scope.code.add(self.values.store(indices.base, indices.address, place, scope))

    def finish(self, walk: Pass, found: list[Accumulator], scope: Scope) -> None:
        """Make the results of a pass known to later ones."""
        for accumulator in found:
            statement = accumulator.statement
            if statement.name in self.riders:
                continue
            array = accumulator.index_array or accumulator.array
            if array is None:
                name = self.values.name(("total", statement.name), statement.name)
                self.values.define(statement.name, scope, name)
            else:
                self.values.keep(statement.name, scope, array.base, array.address)

    # Scans

    def begin_scans(self, walk: Pass, scope: Scope) -> None:
        """What is carried along the lanes starts anew before their loop."""
        for statement in walk.effects:
            if isinstance(statement, ScanAlong) and statement.axis == self.schedule.lane:
                dtype = compute_dtype(statement.expression.dtype)
                name = self.values.name(
                    ("carry", statement.name), f"{base_name(statement.name)}_carry"
                )
                start = self.scalar.identity(statement.op, dtype)
                scope.code.add(f"{self.scalar.type(dtype)} {name} = {start};")

    def fill_scans(self, walk: Pass, scope: Scope) -> None:
        """Rows of carries, for scans along another axis than the lanes."""
        for statement in walk.effects:
            if isinstance(statement, ScanAlong) and statement.axis != self.schedule.lane:
                dtype = compute_dtype(statement.expression.dtype)
                axes = frozenset(statement.axes) - {statement.axis}
                array = self._array(f"{base_name(statement.name)}_carry", dtype, axes)
                self._carries[statement.name] = array
                self._fill_identity(array, statement.op, scope)

    def scan(self, statement: ScanAlong, scope: Scope) -> None:
        """The scan's value for one element or vector, and what it carries on."""
        dtype, lanes = compute_dtype(statement.expression.dtype), scope.lanes
        value = self.values.of(statement.expression, scope)
        name = self.values.name(("total", statement.name), statement.name)
        kind = lanes.type(dtype)
        array = self._carries.get(statement.name)
        if isinstance(array, Array):
            old = self.values.load(array.base, array.address, scope)
            text = lanes.combine(statement.op, old, value, dtype)
            scope.code.add(f"const {kind} {name} = {text};", statement.origins)
            scope.code.add(self.values.store(array.base, array.address, name, scope))
        else:
            carry = self.values.name(
                ("carry", statement.name), f"{base_name(statement.name)}_carry"
            )
            text = lanes.scan(statement.op, value, carry, dtype)
            scope.code.add(f"const {kind} {name} = {text};", statement.origins)
            scope.code.add(f"{carry} = {lanes.last(name, dtype)};")
        if compute_dtype(statement.dtype) != dtype:
            other = self.values.name(("converted", statement.name), statement.name)
            text = lanes.apply("convert", (name,), (dtype,), statement.dtype)
            scope.code.add(f"const {lanes.type(statement.dtype)} {other} = {text};")
            name = other
        self.values.define(statement.name, scope, name)

    # Blocks of riders

    def open_block(self, scope: Scope) -> None:
        self._block_scope = scope

    def prepare_block(self, scope: Scope, turn: str | None) -> None:
        """Clear each rider's array. It is the total itself where each block has one: no `turn`."""
        head = Code()
        for rider in self.riders.values():
            base = rider.array.base
            element = self.scalar.storage(base.dtype)
            if turn is None:
                head.add(f"{element}* {base.name} = {_total_of_block(rider, element, 'block')};")
            else:
                self.scratch.declare(base.name, base.dtype, rider.array.size)
            saved, scope.code = scope.code, head
            self._fill_identity(rider.array, rider.statement.op, scope)
            scope.code = saved
        head.extend(scope.code)
        scope.code = head

    def close_block(self, scope: Scope, turn: str | None) -> None:
        """Add each rider's array to its total when it is the block's turn."""
        for accumulator in self._block:
            self.flush(accumulator, scope)
        if turn is None:
            return
        totals = next(iter(self.riders.values())).totals
        mine = turn if totals == 1 else f"{turn} + block % {totals} * {TURN_WORDS}"
        scope.code.add(f"wait_for_turn({mine}, block);")
        for rider in self.riders.values():
            self._add_block(rider, scope)
        scope.code.add(f"end_turn({mine}, block + {totals});")

    def _add_block(self, rider: Rider, scope: Scope) -> None:
        """`total = part` in the first block of a total, `total op= part` in the others."""
        part, dtype = rider.array.base, rider.array.base.dtype
        lane, size = self.schedule.lane, c_expression(rider.array.size)
        along = lane is not None and rider.array.address.strides[lane] != 0
        lanes = self.vector if along else self.scalar
        whole = isinstance(rider.array.size, int) and rider.array.size % lanes.count == 0
        of = f"block % {rider.totals}"
        total = self.values.names.new(f"{base_name(rider.statement.name)}_total")
        element = self.scalar.storage(dtype)
        scope.code.add(f"{element}* {total} = {_total_of_block(rider, element, of)};")
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


def _total_of_block(rider: Rider, element: str, number: str) -> str:
    """A pointer to one of the totals."""
    start = f"({element}*)(workspace + {c_expression(rider.offset)})"
    if rider.totals == 1:
        return start
    return f"{start} + {number} * {c_expression(rider.width)}"


def _guarded(guard: str, text: str) -> str:
    return f"if ({guard}) {text}" if guard else text
