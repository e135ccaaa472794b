"""Writes: to an address or at indices; set, or combined with what is there."""

from __future__ import annotations

from compiler.codegen.cpp.nests.code import Code, Scope
from compiler.codegen.cpp.nests.values import Values
from compiler.loops.dtypes import compute_dtype
from compiler.loops.nest import Write


def write(effect: Write, scope: Scope, values: Values, guard: str) -> None:
    """Add the statement. `guard` is a condition for executing it, or empty."""
    base, address = values.written.get(effect, (values.bases[effect.buffer], effect.address))
    lanes = scope.lanes
    value = values.of(effect.expression, scope)
    if compute_dtype(effect.expression.dtype) != compute_dtype(effect.dtype):
        value = lanes.apply("convert", (value,), (effect.expression.dtype,), effect.dtype)
    more, index, address = values.scatter(base, address, effect.terms, scope)
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
    if guard:
        scope.code.enclose(f"if ({guard})", inner)
    else:
        scope.code.extend(inner)
