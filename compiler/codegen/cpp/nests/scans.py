"""Scans: carried in a register along the lanes, and in a row of carries along another axis."""

from __future__ import annotations

from tcw.compiler.codegen.cpp.nests.code import Scope
from tcw.compiler.codegen.cpp.nests.passes import Pass
from tcw.compiler.codegen.cpp.nests.scratch import Array, RowArrays
from tcw.compiler.codegen.cpp.nests.vector_values import Values
from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.nest import ScanAlong


class Scans:
    """Initialises and computes scans."""

    def __init__(self, values: Values, arrays: RowArrays) -> None:
        self.schedule = arrays.schedule
        self.values = values
        self.arrays = arrays
        self._carries: dict[str, Array] = {}

    def begin(self, walk: Pass, scope: Scope) -> None:
        """Reset the carries along the lanes before their loop."""
        for statement in walk.effects:
            if isinstance(statement, ScanAlong) and statement.axis == self.schedule.lane:
                dtype = compute_dtype(statement.expression.dtype)
                name = self.values.name(
                    ("carry", statement.name), f"{base_name(statement.name)}_carry"
                )
                start = self.arrays.scalar.identity(statement.op, dtype)
                scope.code.add(f"{self.arrays.scalar.type(dtype)} {name} = {start};")

    def fill(self, walk: Pass, scope: Scope) -> None:
        """Initialise rows of carries, for scans along an axis other than the lanes."""
        for statement in walk.effects:
            if isinstance(statement, ScanAlong) and statement.axis != self.schedule.lane:
                dtype = compute_dtype(statement.expression.dtype)
                axes = frozenset(statement.axes) - {statement.axis}
                array = self.arrays.array(f"{base_name(statement.name)}_carry", dtype, axes)
                self._carries[statement.name] = array
                self.arrays.fill_identity(array, statement.op, scope)

    def scan(self, statement: ScanAlong, scope: Scope) -> None:
        """Compute the scan's value for one element or vector, and update its carry."""
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
            # the next vector waits for one scalar operation, not for lanes to cross a register
            part = self.values.name(("part", statement.name), f"{base_name(statement.name)}_part")
            text = lanes.scan(statement.op, value, dtype)
            scope.code.add(f"const {kind} {part} = {text};", statement.origins)
            start = lanes.broadcast(carry, dtype)
            text = lanes.combine(statement.op, start, part, dtype)
            scope.code.add(f"const {kind} {name} = {text};", statement.origins)
            text = self.arrays.scalar.combine(statement.op, carry, lanes.last(part, dtype), dtype)
            scope.code.add(f"{carry} = {text};")
        text = lanes.held_as(name, dtype, statement.dtype)
        if text != name:
            other = self.values.name(("converted", statement.name), statement.name)
            scope.code.add(f"const {lanes.type(statement.dtype)} {other} = {text};")
            name = other
        self.values.define(statement.name, scope, name)
