"""Arrays in scratch memory, as long as the loops inside a row: kept values, sums, carries."""

from __future__ import annotations

from collections.abc import Callable

from compiler.codegen.cpp.nests.code import Code, Scope
from compiler.codegen.cpp.nests.schedule import Schedule
from compiler.codegen.cpp.nests.scratch import Array, Scratch
from compiler.codegen.cpp.vocabulary import Lanes
from compiler.codegen.nests.facts import Facts
from compiler.codegen.nests.names import base_name
from compiler.loops.expressions import Local
from compiler.loops.sizes import Size, c_expression

ARG = {"argmax": "max", "argmin": "min"}


class RowArrays:
    """Declares and initialises row arrays."""

    def __init__(
        self, facts: Facts, schedule: Schedule, scratch: Scratch, chunk: Size | None
    ) -> None:
        self.facts = facts
        self.schedule = schedule
        self.scratch = scratch
        self.chunk = chunk
        self.kept: dict[str, Array] = {}
        self.vector = scratch.vocabulary.lanes(schedule.lanes)
        self.scalar = scratch.vocabulary.lanes(1)

    def array(self, wanted: str, dtype: str, axes: frozenset[int]) -> Array:
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
            self.kept[name] = self.array(f"{base_name(name)}_row", statement.dtype, axes)
        return self.kept[name]

    def fill(self, array: Array, start: Callable[[Lanes], str], scope: Scope) -> None:
        """Fill an array, vector by vector if it has a result per lane."""
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
        scope.code.loop(f"for (long i = 0; i < {size}; i += {lanes.count})", loop)

    def fill_identity(self, array: Array, op: str, scope: Scope) -> None:
        dtype = array.base.dtype
        self.fill(array, lambda lanes: lanes.identity(ARG.get(op, op), dtype), scope)

    def add(self, to: Array, other: Array, scope: Scope) -> None:
        """Add an array to one of the same layout."""
        lane, dtype = self.schedule.lane, to.base.dtype
        along = lane is not None and to.address.strides[lane] != 0
        lanes = self.vector if along else self.scalar
        size, loop = c_expression(to.size), Code()
        whole = isinstance(to.size, int) and to.size % lanes.count == 0
        left = f"{size} - i < {lanes.count} ? {size} - i : {lanes.count}"

        def load(array: Array) -> str:
            at = f"{array.base.name} + i"
            return lanes.load(dtype, at) if whole else lanes.load_partial(dtype, at, left)

        both = lanes.combine("sum", load(to), load(other), dtype)
        at = f"{to.base.name} + i"
        store = lanes.store(dtype, at, both) if whole else ""
        loop.add(store or lanes.store_partial(dtype, at, both, left))
        scope.code.loop(f"for (long i = 0; i < {size}; i += {lanes.count})", loop)
