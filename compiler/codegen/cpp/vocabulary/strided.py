"""Lanes to and from elements that are not contiguous: strided, gathered, scattered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import memory

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def _collect(
    lanes: Lanes, dtype: str, name: str, parameter: str, place: str, count: str | None
) -> None:
    """Define a load whose lane k is at p[place]; `place` contains {k}."""
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = memory.raw_of(lanes, dtype)
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
            f"{{ {body} return {memory.widened(lanes, dtype, 'raw')}; }}"
        )

    key = f"{name}({element}, {parameter}{'' if count is None else ', count'})"
    lanes.need(key, text)


def _spread(
    lanes: Lanes, dtype: str, name: str, parameter: str, place: str, count: str | None
) -> None:
    """Define a store whose lane k goes to p[place]; `place` contains {k}."""
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = memory.raw_of(lanes, dtype)
        base = (
            f"{raw.element}* q = ({raw.element}*)p; "
            f"{raw.vector} raw = {memory.narrowed(lanes, dtype, 'value')};"
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
        whole = memory.load(lanes, dtype, pointer)
        return whole if count is None else memory.load_partial(lanes, dtype, pointer, count)
    name = f"load_strided{lanes.suffix}"
    _collect(lanes, dtype, name, "long stride", "{k} * stride", count)
    return _call(name, pointer, stride, count)


def store_strided(
    lanes: Lanes, dtype: str, pointer: str, value: str, stride: str, count: str | None
) -> str:
    """Lane k to pointer[k*stride]."""
    if lanes.count == 1:
        whole = memory.store(lanes, dtype, pointer, value)
        return whole if count is None else memory.store_partial(lanes, dtype, pointer, value, count)
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
    """Lane k to pointer[index[k]], in lane order."""
    if lanes.count == 1:
        return store_strided(lanes, dtype, f"{pointer} + ({index})", value, "0", count)
    _spread(lanes, dtype, "scatter", f"{lanes.type(index_dtype)} index", "index[{k}]", count)
    return _call("scatter", pointer, index, value, count) + ";"
