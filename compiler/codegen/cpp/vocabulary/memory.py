"""Between memory and registers: whole vectors, their first lanes, strided, gathered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import conversions, hardware, sixteen
from compiler.codegen.cpp.vocabulary.types import SCALARS, UNSIGNED
from compiler.loops.dtypes import BYTES, REDUCED

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


@dataclass(frozen=True, slots=True)
class _Raw:
    """How the elements of a dtype lie in memory, before they are widened to a register."""

    element: str
    size: int
    vector: str


def _raw(lanes: Lanes, dtype: str) -> _Raw:
    size = BYTES[dtype]
    if dtype in REDUCED or dtype == "bool":
        return _Raw(UNSIGNED[size], size, lanes.unsigned(size))
    return _Raw(SCALARS[dtype], size, lanes.type(dtype))


def _widen(lanes: Lanes, dtype: str, raw: str) -> str:
    """Raw elements as the register of their dtype."""
    if dtype in REDUCED:
        return sixteen.expand(lanes, dtype, raw)
    if dtype == "bool":
        if lanes.count == 1:
            return f"{raw} != 0"
        return f"{conversions.cast(lanes, raw, 'uint8', 'int32')} != 0"
    return raw


def _narrow(lanes: Lanes, dtype: str, value: str) -> str:
    """A register as the raw elements of its dtype."""
    if dtype in REDUCED:
        return sixteen.round_bits(lanes, dtype, value)
    if dtype == "bool" and lanes.count > 1:
        return f"{conversions.cast(lanes, value, 'int32', 'uint8')} & 1"
    return value


def _plain(lanes: Lanes, dtype: str) -> bool:
    """Scalar code reads and writes the element itself."""
    return lanes.count == 1 and dtype not in REDUCED


def _element(pointer: str) -> str:
    return f"*{pointer}" if pointer.isidentifier() else f"*({pointer})"


def broadcast(lanes: Lanes, scalar: str, dtype: str) -> str:
    """A scalar in every lane."""
    vector, name = lanes.type(dtype), f"broadcast{lanes.suffix}"
    element = SCALARS["float32" if dtype in REDUCED else dtype]
    value = "-(int)x" if dtype == "bool" else "x"
    lanes.need(
        f"{name}({element})",
        lambda: (
            f"INLINE {vector} {name}({element} x) "
            f"{{ return {vector}{{{', '.join([value] * lanes.count)}}}; }}"
        ),
    )
    return f"{name}({scalar})"


def iota(lanes: Lanes, start: str, dtype: str) -> str:
    """start, start+1, ..."""
    if lanes.count == 1:
        return f"({SCALARS[dtype]})({start})"
    vector, name = lanes.type(dtype), f"iota_{lanes.type(dtype)}"
    steps = ", ".join(map(str, range(lanes.count)))
    lanes.need(
        name,
        lambda: (
            f"INLINE {vector} {name}({SCALARS[dtype]} start) "
            f"{{ return {vector}{{{steps}}} + start; }}"
        ),
    )
    return f"{name}({start})"


def first(lanes: Lanes, count: str) -> str:
    """Mask of the lanes below `count`."""
    if lanes.count == 1:
        return f"({count}) > 0"
    mask, name = lanes.type("bool"), f"first{lanes.suffix}"
    steps = ", ".join(map(str, range(lanes.count)))
    lanes.need(
        name,
        lambda: f"INLINE {mask} {name}(long count) {{ return {mask}{{{steps}}} < (int)count; }}",
    )
    return f"{name}({count})"


def load(lanes: Lanes, dtype: str, pointer: str) -> str:
    """A whole register."""
    if _plain(lanes, dtype) and dtype != "bool":
        return _element(pointer)
    name, element, register = f"load{lanes.suffix}", lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = _raw(lanes, dtype)
        if lanes.count == 1:
            value = f"*(const {raw.element}*)p"
        else:
            value = f"*(const {lanes.unaligned(raw.vector, raw.element, raw.size)}*)p"
        widened = _widen(lanes, dtype, value)
        return f"INLINE {register} {name}(const {element}* p) {{ return {widened}; }}"

    lanes.need(f"{name}({element})", text)
    return f"{name}({pointer})"


def store(lanes: Lanes, dtype: str, pointer: str, value: str) -> str:
    """Every lane."""
    if _plain(lanes, dtype):
        return f"{_element(pointer)} = {value};"
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = _raw(lanes, dtype)
        kind = raw.element
        if lanes.count > 1:
            kind = lanes.unaligned(raw.vector, raw.element, raw.size)
        narrow = _narrow(lanes, dtype, "value")
        return f"INLINE void store({element}* p, {register} value) {{ *({kind}*)p = {narrow}; }}"

    lanes.need(f"store({element}, {register})", text)
    return f"store({pointer}, {value});"


def load_partial(lanes: Lanes, dtype: str, pointer: str, count: str) -> str:
    """The first lanes; zeros elsewhere."""
    if lanes.count == 1:
        return f"(({count}) > 0 ? {load(lanes, dtype, pointer)} : {lanes.constant(0, dtype)})"
    name, element, register = f"load{lanes.suffix}", lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = _raw(lanes, dtype)
        masked = hardware.load_masked(lanes, raw.vector, raw.size)
        body = masked or (
            f"{raw.vector} raw = {{}}; __builtin_memcpy(&raw, p, count * {raw.size});"
        )
        return (
            f"INLINE {register} {name}(const {element}* p, long count) "
            f"{{ {body} return {_widen(lanes, dtype, 'raw')}; }}"
        )

    lanes.need(f"{name}({element}, count)", text)
    return f"{name}({pointer}, {count})"


def store_partial(lanes: Lanes, dtype: str, pointer: str, value: str, count: str) -> str:
    """The first lanes."""
    if lanes.count == 1:
        return f"if (({count}) > 0) {store(lanes, dtype, pointer, value)}"
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = _raw(lanes, dtype)
        masked = hardware.store_masked(lanes, raw.size)
        write = masked or f"__builtin_memcpy(p, &raw, count * {raw.size});"
        return (
            f"INLINE void store({element}* p, {register} value, long count) "
            f"{{ {raw.vector} raw = {_narrow(lanes, dtype, 'value')}; {write} }}"
        )

    lanes.need(f"store({element}, {register}, count)", text)
    return f"store({pointer}, {value}, {count});"


def _collect(
    lanes: Lanes, dtype: str, name: str, parameter: str, place: str, count: str | None
) -> None:
    """A load whose lane k is at p[place]: `place` has {k}."""
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = _raw(lanes, dtype)
        base = f"const {raw.element}* q = (const {raw.element}*)p;"
        if count is None:
            items = ", ".join(f"q[{place.format(k=k)}]" for k in range(lanes.count))
            body = f"{base} {raw.vector} raw = {{{items}}};"
        else:
            body = (
                f"{base} {raw.vector} raw = {{}}; "
                f"for (long k = 0; k < count; k++) raw[k] = q[{place.format(k='k')}];"
            )
        tail = "" if count is None else ", long count"
        return (
            f"INLINE {register} {name}(const {element}* p, {parameter}{tail}) "
            f"{{ {body} return {_widen(lanes, dtype, 'raw')}; }}"
        )

    key = f"{name}({element}, {parameter}{'' if count is None else ', count'})"
    lanes.need(key, text)


def _spread(
    lanes: Lanes, dtype: str, name: str, parameter: str, place: str, count: str | None
) -> None:
    """A store whose lane k goes to p[place]."""
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = _raw(lanes, dtype)
        base = (
            f"{raw.element}* q = ({raw.element}*)p; "
            f"{raw.vector} raw = {_narrow(lanes, dtype, 'value')};"
        )
        if count is None:
            items = range(lanes.count)
            body = " ".join(f"q[{place.format(k=k)}] = raw[{k}];" for k in items)
        else:
            body = f"for (long k = 0; k < count; k++) q[{place.format(k='k')}] = raw[k];"
        tail = "" if count is None else ", long count"
        return (
            f"INLINE void {name}({element}* p, {parameter}, {register} value{tail}) "
            f"{{ {base} {body} }}"
        )

    key = f"{name}({element}, {parameter}, {register}{'' if count is None else ', count'})"
    lanes.need(key, text)


def _call(name: str, *arguments: str | None) -> str:
    return f"{name}({', '.join(argument for argument in arguments if argument is not None)})"


def load_strided(lanes: Lanes, dtype: str, pointer: str, stride: str, count: str | None) -> str:
    """Lane k from pointer[k*stride]."""
    if lanes.count == 1:
        whole = load(lanes, dtype, pointer)
        return whole if count is None else load_partial(lanes, dtype, pointer, count)
    name = f"load_strided{lanes.suffix}"
    _collect(lanes, dtype, name, "long stride", "{k} * stride", count)
    return _call(name, pointer, stride, count)


def store_strided(
    lanes: Lanes, dtype: str, pointer: str, value: str, stride: str, count: str | None
) -> str:
    """Lane k to pointer[k*stride]."""
    if lanes.count == 1:
        whole = store(lanes, dtype, pointer, value)
        return whole if count is None else store_partial(lanes, dtype, pointer, value, count)
    _spread(lanes, dtype, "store_strided", "long stride", "{k} * stride", count)
    return _call("store_strided", pointer, stride, value, count) + ";"


def gather(
    lanes: Lanes, dtype: str, pointer: str, index: str, count: str | None, index_dtype: str
) -> str:
    """Lane k from pointer[index[k]]."""
    if lanes.count == 1:
        return load_strided(lanes, dtype, f"{pointer} + ({index})", "0", count)
    name = f"gather{lanes.suffix}"
    _collect(lanes, dtype, name, f"{lanes.type(index_dtype)} index", "index[{k}]", count)
    return _call(name, pointer, index, count)


def scatter(
    lanes: Lanes,
    dtype: str,
    pointer: str,
    index: str,
    value: str,
    count: str | None,
    index_dtype: str,
) -> str:
    """Lane k to pointer[index[k]], in order."""
    if lanes.count == 1:
        return store_strided(lanes, dtype, f"{pointer} + ({index})", value, "0", count)
    _spread(lanes, dtype, "scatter", f"{lanes.type(index_dtype)} index", "index[{k}]", count)
    return _call("scatter", pointer, index, value, count) + ";"


def load_even_odd(lanes: Lanes, pointer: str, even: str, odd: str) -> str:
    """bfloat16: the low half of each word shifted up, the high half as it stands."""
    register, words = lanes.type("float32"), lanes.unsigned(4)
    element, memory = lanes.storage("bfloat16"), lanes.unaligned(words, "unsigned", 2)
    lanes.need(
        f"load_even_odd({register})",
        lambda: (
            f"INLINE void load_even_odd(const {element}* p, {register}& even, {register}& odd) "
            f"{{ {words} u = *(const {memory}*)p; "
            f"even = ({register})(u << 16); odd = ({register})(u & 0xffff0000u); }}"
        ),
    )
    return f"load_even_odd({pointer}, {even}, {odd});"


def store_even_odd(lanes: Lanes, pointer: str, even: str, odd: str) -> str:
    """bfloat16: both registers rounded and merged into words."""
    register, words = lanes.type("float32"), lanes.unsigned(4)
    element, memory = lanes.storage("bfloat16"), lanes.unaligned(words, "unsigned", 2)
    sixteen.round_words(lanes)
    lanes.need(
        f"store_even_odd({register})",
        lambda: (
            f"INLINE void store_even_odd({element}* p, {register} even, {register} odd) "
            f"{{ *({memory}*)p = (bf16_words(even) >> 16) | (bf16_words(odd) & 0xffff0000u); }}"
        ),
    )
    return f"store_even_odd({pointer}, {even}, {odd});"
