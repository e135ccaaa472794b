"""Accumulators of reductions: registers, or arrays over the remaining axes.

A reduction with one result per row accumulates in several vectors (independent chains) and finally
reduces across their lanes. A reduction with a result per lane, or per step of an inner loop,
accumulates in an array, and so does a rider (`riders`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcw.compiler.codegen.cpp.nests.code import Code, Scope
from tcw.compiler.codegen.cpp.nests.passes import Pass
from tcw.compiler.codegen.cpp.nests.quick import quick_max
from tcw.compiler.codegen.cpp.nests.riders import Rider
from tcw.compiler.codegen.cpp.nests.scratch import Array, RowArrays
from tcw.compiler.codegen.cpp.nests.vector_values import Values
from tcw.compiler.codegen.cpp.vocabulary import Lanes
from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.codegen.nests.online_sums import has_online_sum
from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import Reduction
from tcw.compiler.loops.sizes import Size, c_expression, multiply

LARGEST = {"float32": 3.4028234663852886e38}
ROOM = 2.0
"""How far the top of an `exp_sum` is raised above the current maximum, so that raising it is rare
even for an ascending row. A larger margin would lose bits in the difference to the top."""


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
    """The scope in which its registers are reset, if it has registers."""
    guard: str = ""
    """A condition that is true once per element of its domain, if loops repeat elements."""
    tops: list[str] = field(default_factory=list)
    """For an `exp_sum`: what each of its registers is relative to, equal in all lanes."""
    chain: Array | None = None
    """The array of a long sum's current chain of additions; `array` has the chains before."""
    chains: str = ""
    """The same for registers: the one that has the chains before."""
    columns: bool = False
    """Its registers are the vectors of its array, in order."""
    adds: bool = False
    """The array of `columns` already has sums, to which those of the registers are added."""
    copies: list[list[str]] = field(default_factory=list)
    """Of the registers of `columns`: rows side by side add to registers of their own."""

    def parameters(self, lanes: Lanes) -> list[str]:
        """Parameters of a step's function: the registers that it updates."""
        chains = (names for names in (self.names, self.tops) if names)
        return [f"{lanes.type(self.dtype)}& {within(names, None)}" for names in chains]

    def arguments(self, place: int) -> list[str]:
        return [names[place] for names in (self.names, self.tops) if names]


def within(names: list[str], place: int | None) -> str:
    """The register of a step; the first one after the last. With None, its parameter name in the
    step's function."""
    if place is None:
        return f"{names[0].removesuffix('_0')}_"
    return names[place if place < len(names) else 0]


class Accumulators:
    """Declares, updates and finishes accumulators."""

    def __init__(self, values: Values, arrays: RowArrays, riders: Mapping[str, Rider]) -> None:
        self.facts = arrays.facts
        self.schedule = arrays.schedule
        self.values = values
        self.arrays = arrays
        self.riders = riders
        self.vector = arrays.vector
        self.scalar = arrays.scalar
        self.maxima = {
            s.expression: s.name
            for s in self.facts.nest.statements
            if isinstance(s, Reduction) and s.op == "max"
        }
        self._block: list[Accumulator] = []
        self._levels: list[tuple[Scope, frozenset[int]]] = []

    def begin(self, walk: Pass, scope: Scope, columns: int) -> list[Accumulator]:
        """The accumulators of a pass. Arrays are initialised here, except those that registers
        stand for: sums of as many `columns`, in vectors."""
        accumulators: list[Accumulator] = []
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
                array = self.arrays.array(
                    f"{base_name(statement.name)}_sums", dtype, accumulator.row_axes
                )
                accumulator.array = array
            accumulator.columns = bool(columns) and self._in_registers(accumulator)
            if accumulator.row_axes and not rider and not accumulator.columns:
                assert accumulator.array
                self.arrays.fill_identity(accumulator.array, statement.op, scope)
                if statement.op in ARG:
                    index = self.vector.index_dtype
                    indices = self.arrays.array(
                        f"{base_name(statement.name)}_at", index, accumulator.row_axes
                    )
                    accumulator.index_array = indices
                    self.arrays.fill(
                        indices, lambda lanes: lanes.constant(0, lanes.index_dtype), scope
                    )
            accumulators.append(accumulator)
        return accumulators

    def _in_registers(self, accumulator: Accumulator) -> bool:
        """Whether each lane has a result of its own, and all units of a block add to the same."""
        statement, lane = accumulator.statement, self.schedule.lane
        if lane is None or statement.op in ARG or statement.op == "exp_sum":
            return False
        if statement.name not in self.riders:
            return accumulator.row_axes == {lane}
        if not self._levels or self.schedule.chunk is not None or lane not in statement.axes:
            return False
        return self._level(statement) is not self._levels[-1][0]

    def _level(self, statement: Reduction) -> Scope:
        """The outermost scope that fixes every axis along which a rider varies, except the
        lanes."""
        wanted = set(statement.axes) - {self.schedule.lane}
        levels = (scope for scope, fixed in self._levels if wanted <= fixed)
        return next(levels, self._levels[-1][0])

    def _op(self, statement: Reduction) -> str:
        """The operation, in a variant that may lose NaN if other reductions propagate it."""
        if statement.op == "exp_sum":
            return "sum"
        quick = quick_max(self.facts, statement) or has_online_sum(self.facts, statement)
        return "max_quick" if quick else statement.op

    def declare(self, accumulator: Accumulator, holder: Scope, steps: int, columns: int) -> None:
        """Declare registers in the scope that resets them, unless each lane has its own result and
        they are too many."""
        lane = self.schedule.lane
        if accumulator.columns:
            if accumulator.statement.name in self.riders:
                holder = self._level(accumulator.statement)
                accumulator.adds = holder is not self._levels[0][0]
                self._block.append(accumulator)
            self._declare(accumulator, holder, columns)
            return
        if accumulator.array and (lane is None or lane in accumulator.row_axes):
            return
        domain = self.facts.domain(accumulator.statement)
        rides = accumulator.statement.name in self.riders
        if rides and not accumulator.statement.axes and self._levels:
            holder = self._levels[0][0]
            self._block.append(accumulator)
        if accumulator.array and (lane not in domain) and not rides:
            return
        self._declare(accumulator, holder, steps)

    def _declare(self, accumulator: Accumulator, holder: Scope, steps: int) -> None:
        lanes = self._lanes(accumulator.statement)
        op, dtype = accumulator.op, accumulator.dtype
        accumulator.holder = holder
        base = self.values.names.family(
            f"{base_name(accumulator.statement.name)}_part", [*map(str, range(steps)), "", "at"]
        )
        kind, start = lanes.type(dtype), lanes.identity(ARG.get(op, op), dtype)
        accumulator.names = [f"{base}_{place}" for place in range(steps)]
        _declared(holder, kind, accumulator.names, start)
        if accumulator.statement.op == "exp_sum":
            accumulator.tops = [f"{base}_{place}_top" for place in range(steps)]
            # finite, so that -inf minus the maximum of a row of only -inf is not NaN
            start = lanes.constant(-LARGEST[dtype], dtype)
            _declared(holder, kind, accumulator.tops, start)
        if op in ARG:
            index = lanes.index_dtype
            name = f"{base}_at"
            accumulator.index_names = [name]
            holder.code.add(f"{lanes.type(index)} {name} = {lanes.iota('0', index)};")

    def update(self, accumulator: Accumulator, scope: Scope, place: int | None) -> None:
        """Add one element, or one vector of elements."""
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
        """Add exp(x - top). If x is above the top, first raise the top and rescale the sum."""
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
        self,
        value: str,
        top: str,
        dtype: str,
        lanes: Lanes,
        op: str = "exp_nonpositive_beside_one",
    ) -> str:
        """exp(value - top); by default for a value that is at most the top."""
        difference = lanes.apply("sub", (value, top), (dtype, dtype), dtype)
        return lanes.apply(op, (difference,), (dtype,), dtype)

    def _update_array(self, accumulator: Accumulator, value: str, scope: Scope) -> None:
        statement, dtype, lanes = accumulator.statement, accumulator.dtype, scope.lanes
        array = accumulator.chain or accumulator.array
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
        """The flat position of an element within the reduced axes."""
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

    def _lanes(self, statement: Reduction) -> Lanes:
        """The lanes of a reduction's registers."""
        lane = self.schedule.lane
        wide = lane is not None and lane in self.facts.domain(statement)
        return self.vector if wide else self.scalar

    def rounds(self, accumulator: Accumulator) -> bool:
        """Whether a long chain of its additions loses accuracy."""
        statement = accumulator.statement
        floats = accumulator.dtype.startswith("float")
        return statement.op == "sum" and floats and statement.name not in self.riders

    def open_chain(self, accumulator: Accumulator) -> None:
        """From here on, additions go to a chain, which `end_chain` adds to the result."""
        wanted = f"{base_name(accumulator.statement.name)}_chain"
        dtype, holder = accumulator.dtype, accumulator.holder
        if accumulator.columns:
            assert accumulator.array
            assert holder
            accumulator.adds = True
            self.arrays.fill_identity(accumulator.array, accumulator.op, holder)
            return
        if accumulator.names:
            assert holder
            name = accumulator.chains = self.values.names.new(f"{wanted}s")
            lanes = self._lanes(accumulator.statement)
            start = lanes.identity(accumulator.op, dtype)
            holder.code.add(f"{lanes.type(dtype)} {name} = {start};")
            return
        accumulator.chain = self.arrays.array(wanted, dtype, accumulator.row_axes)

    def begin_chain(self, accumulator: Accumulator, scope: Scope) -> None:
        """Clear the array of a chain; its registers are cleared at its end."""
        if accumulator.chain is not None:
            self.arrays.fill_identity(accumulator.chain, accumulator.op, scope)

    def end_chain(self, accumulator: Accumulator, scope: Scope) -> None:
        """Add a chain to those before it."""
        array, chain, dtype = accumulator.array, accumulator.chain, accumulator.dtype
        if accumulator.columns:
            self._store_columns(accumulator, scope)
            start = self.vector.identity(accumulator.op, dtype)
            scope.code.add(f"{' = '.join(accumulator.names)} = {start};")
            return
        if accumulator.chains:
            lanes, name = self._lanes(accumulator.statement), accumulator.chains
            whole = self._together(accumulator, accumulator.names, lanes)
            scope.code.add(f"{name} = {lanes.combine(accumulator.op, name, whole, dtype)};")
            start = lanes.identity(accumulator.op, dtype)
            scope.code.add(f"{' = '.join(accumulator.names)} = {start};")
            return
        assert array
        assert chain
        self.arrays.add(array, chain, scope)

    def of_columns(self, holder: Scope) -> list[Accumulator]:
        """Those whose registers are columns, reset in this scope."""
        return [
            accumulator
            for accumulator in self._block
            if accumulator.columns and accumulator.holder is holder
        ]

    def copy(self, accumulator: Accumulator) -> list[str]:
        """Declare the registers once more."""
        assert accumulator.holder is not None
        names = [self.values.names.new(name) for name in accumulator.names]
        kind = self.vector.type(accumulator.dtype)
        start = self.vector.identity(accumulator.op, accumulator.dtype)
        _declared(accumulator.holder, kind, names, start)
        accumulator.copies.append(names)
        return names

    def _store_columns(self, accumulator: Accumulator, scope: Scope) -> None:
        """Store registers in the array that they stand for, or add them to it."""
        assert accumulator.array
        base, lanes, dtype = accumulator.array.base, self.vector, accumulator.dtype
        start = self.values.pointer(base, accumulator.array.address, scope)
        for place, name in enumerate(accumulator.names):
            at = f"{start} + {place * lanes.count}" if place else start
            parts = [name, *(copy[place] for copy in accumulator.copies)]
            value = self._together(accumulator, parts, lanes)
            if accumulator.adds:
                value = lanes.combine(accumulator.op, lanes.load(base.dtype, at), value, dtype)
            scope.code.add(lanes.store(base.dtype, at, value))

    def _together(self, accumulator: Accumulator, parts: list[str], lanes: Lanes) -> str:
        """One vector of several registers."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            unpaired = parts[-1:] if len(parts) % 2 else []
            combined = [lanes.combine(accumulator.op, *pair, accumulator.dtype) for pair in pairs]
            parts = combined + unpaired
        return parts[0]

    def flush(self, accumulator: Accumulator, scope: Scope) -> None:
        """Finalise the registers of an accumulator that was declared in this scope."""
        if not accumulator.names or accumulator.holder is not scope:
            return
        statement, dtype = accumulator.statement, accumulator.dtype
        if accumulator.columns:
            self._store_columns(accumulator, scope)
            return
        lanes = self._lanes(statement)
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
        if accumulator.chains:
            parts.append(accumulator.chains)
        together = self._together(accumulator, parts, lanes)
        total = lanes.reduce(accumulator.op, together, dtype)
        if accumulator.array is None:
            total = self.scalar.held_as(total, dtype, statement.dtype)
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

    def finish(self, found: list[Accumulator], scope: Scope) -> None:
        """Make the results of a pass available to later passes."""
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

    # Blocks of riders

    def open_block(self, levels: list[tuple[Scope, frozenset[int]]]) -> None:
        """Some riders have registers: full sums, and sums of a few columns. They are reset in one
        of these scopes, from that of a block to that of a row, each with the axes fixed in it."""
        self._levels = levels

    def close_level(self, scope: Scope) -> None:
        """Finalise the registers that were reset in this scope."""
        for accumulator in self._block:
            self.flush(accumulator, scope)


def _declared(holder: Scope, kind: str, names: list[str], start: str) -> None:
    holder.code.add(f"{kind} {', '.join(f'{name} = {start}' for name in names)};")


def _guarded(guard: str, text: str) -> str:
    return f"if ({guard}) {text}" if guard else text
