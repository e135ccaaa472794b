"""Writes: to an address or at indices; set, or combined with what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcw.compiler.codegen.cpp.nests.code import Code, Scope
from tcw.compiler.codegen.cpp.nests.interleaved import interleaved
from tcw.compiler.codegen.cpp.nests.vector_values import Values
from tcw.compiler.loops.dtypes import compute_dtype
from tcw.compiler.loops.nest import Write


def write_all(
    effects: Sequence[Write], scope: Scope, values: Values, guard: Callable[[Write], str]
) -> None:
    """Add the statements. Neighbours whose elements interleave without gaps are one store."""
    at = 0
    while at < len(effects):
        step = values.lane_step(effects[at].address, scope) if scope.is_lane else 0
        count = interleaved(effects[at:], values.facts, step, scope.lanes.count)
        if not values.written.keys().isdisjoint(effects[at : at + count]):
            count = 0
        if count:
            _write_interleaved(effects[at : at + count], scope, values, guard(effects[at]))
        else:
            write(effects[at], scope, values, guard(effects[at]))
        at += count or 1


def _write_interleaved(effects: Sequence[Write], scope: Scope, values: Values, guard: str) -> None:
    base, address = values.bases[effects[0].buffer], effects[0].address
    registers = [_value(effect, scope, values) for effect in effects]
    pointer = values.pointer(base, address, scope)
    inner = Code()
    origins = tuple(dict.fromkeys(o for effect in effects for o in effect.origins))
    store = scope.lanes.store_interleaved(base.dtype, pointer, registers, scope.count)
    inner.add(store, origins)
    _add(inner, scope, guard)


def _value(effect: Write, scope: Scope, values: Values) -> str:
    value = values.of(effect.expression, scope)
    return scope.lanes.held_as(value, effect.expression.dtype, effect.dtype)


def _add(inner: Code, scope: Scope, guard: str) -> None:
    if guard:
        scope.code.enclose(f"if ({guard})", inner)
    else:
        scope.code.extend(inner)


def write(effect: Write, scope: Scope, values: Values, guard: str) -> None:
    """Add the statement. `guard` is a condition for executing it, or empty."""
    base, address = values.written.get(effect, (values.bases[effect.buffer], effect.address))
    lanes = scope.lanes
    value = _value(effect, scope, values)
    more, index, address = values.scatter(address, effect.terms, scope)
    register = compute_dtype(effect.dtype)
    mode = "bitwise_or" if effect.mode == "add" and effect.dtype == "bool" else effect.mode
    inner = Code()
    if index is None:
        if mode != "set":
            old = values.load(base, address, scope, more)
            value = lanes.apply(mode, (old, value), (register, register), register)
        inner.add(values.store(base, address, value, scope, more), effect.origins)
    else:
        pointer = values.pointer(base, address, scope) + more
        name = values.name(("scatter", effect), "at")
        scope.code.add(f"const {lanes.type('int64')} {name} = {index};")
        if mode != "set":
            old = lanes.gather(base.dtype, pointer, name, scope.count)
            value = lanes.apply(mode, (old, value), (register, register), register)
        inner.add(lanes.scatter(base.dtype, pointer, name, value, scope.count), effect.origins)
    _add(inner, scope, guard)
