"""Moves between memory and registers: whole vectors, their first lanes, pairs of bfloat16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import conversions, hardware
from tcw.compiler.codegen.cpp.vocabulary.types import SCALARS, UNSIGNED
from tcw.compiler.loops.dtypes import BYTES, REDUCED

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


@dataclass(frozen=True, slots=True)
class Raw:
    """The in-memory representation of a dtype's elements, before widening to a register."""

    element: str
    size: int
    vector: str


def raw_of(lanes: Lanes, dtype: str) -> Raw:
    size = BYTES[dtype]
    if dtype in REDUCED or dtype == "bool":
        return Raw(UNSIGNED[size], size, lanes.unsigned(size))
    return Raw(SCALARS[dtype], size, lanes.type(dtype))


def widened(lanes: Lanes, dtype: str, raw: str) -> str:
    """Raw elements widened to a register of their dtype."""
    if dtype in REDUCED:
        return conversions.expand(lanes, dtype, raw)
    if dtype == "bool":
        if lanes.count == 1:
            return f"{raw} != 0"
        return f"{conversions.cast(lanes, raw, 'uint8', 'int32')} != 0"
    return raw


def narrowed(lanes: Lanes, dtype: str, value: str) -> str:
    """A register narrowed to raw elements of its dtype."""
    if dtype in REDUCED:
        return conversions.round_bits(lanes, dtype, value)
    if dtype == "bool" and lanes.count > 1:
        return f"{conversions.cast(lanes, value, 'int32', 'uint8')} & 1"
    return value


def _plain(lanes: Lanes, dtype: str) -> bool:
    """Whether scalar code reads and writes the element directly."""
    return lanes.count == 1 and dtype not in REDUCED


def _element(pointer: str) -> str:
    return f"*{pointer}" if pointer.isidentifier() else f"*({pointer})"


def load(lanes: Lanes, dtype: str, pointer: str) -> str:
    """The elements at `pointer`, which may be unaligned."""
    if _plain(lanes, dtype) and dtype != "bool":
        return _element(pointer)
    name, element, register = f"load{lanes.suffix}", lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = raw_of(lanes, dtype)
        if lanes.count == 1:
            value = f"*(const {raw.element}*)p"
        else:
            value = f"*(const {lanes.unaligned(raw.vector, raw.element, raw.size)}*)p"
        result = widened(lanes, dtype, value)
        return f"INLINE {register} {name}(const {element}* p) {{ return {result}; }}"

    lanes.need(f"{name}({element})", text)
    return f"{name}({pointer})"


def store(lanes: Lanes, dtype: str, pointer: str, value: str) -> str:
    """Statement: write every lane."""
    if _plain(lanes, dtype):
        return f"{_element(pointer)} = {value};"
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = raw_of(lanes, dtype)
        kind = raw.element
        if lanes.count > 1:
            kind = lanes.unaligned(raw.vector, raw.element, raw.size)
        narrow = narrowed(lanes, dtype, "value")
        return f"INLINE void store({element}* p, {register} value) {{ *({kind}*)p = {narrow}; }}"

    lanes.need(f"store({element}, {register})", text)
    return f"store({pointer}, {value});"


def load_partial(lanes: Lanes, dtype: str, pointer: str, count: str) -> str:
    """The first `count` (0 to all) elements, then zeros. Does not read beyond them."""
    if lanes.count == 1:
        return f"(({count}) > 0 ? {load(lanes, dtype, pointer)} : {lanes.constant(0, dtype)})"
    name, element, register = f"load{lanes.suffix}", lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = raw_of(lanes, dtype)
        body = hardware.load(lanes, raw.vector, raw.size)
        body = body or (f"{raw.vector} raw = {{}}; __builtin_memcpy(&raw, p, count * {raw.size});")
        return (
            f"INLINE {register} {name}(const {element}* p, long count) "
            f"{{ {body} return {widened(lanes, dtype, 'raw')}; }}"
        )

    lanes.need(f"{name}({element}, count)", text)
    return f"{name}({pointer}, {count})"


def store_partial(lanes: Lanes, dtype: str, pointer: str, value: str, count: str) -> str:
    """Statement: write the first `count` (0 to all) lanes, touching no memory beyond them."""
    if lanes.count == 1:
        return f"if (({count}) > 0) {store(lanes, dtype, pointer, value)}"
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = raw_of(lanes, dtype)
        write = hardware.store(lanes, raw.size)
        write = write or f"__builtin_memcpy(p, &raw, count * {raw.size});"
        return (
            f"INLINE void store({element}* p, {register} value, long count) "
            f"{{ {raw.vector} raw = {narrowed(lanes, dtype, 'value')}; {write} }}"
        )

    lanes.need(f"store({element}, {register}, count)", text)
    return f"store({pointer}, {value}, {count});"
