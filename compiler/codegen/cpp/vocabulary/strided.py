"""Lanes to and from elements that are not contiguous: strided, gathered, scattered.

Elements a few places apart are loaded with everything between them, and shuffled together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import hardware, loads_stores
from tcw.compiler.codegen.cpp.vocabulary.loads_stores import Raw
from tcw.compiler.codegen.cpp.vocabulary.types import SCALARS
from tcw.compiler.loops.sizes import Size

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


_TWINS = {SCALARS["int64"]: "float64", SCALARS["int32"]: "float32"}
"""Integers whose bits are loaded as floats: these go into a part of a register by one instruction,
the others through a general register (300 x 200 int32, 9 apart: 49 instead of 90 us)."""


def _collect(
    lanes: Lanes,
    dtype: str,
    name: str,
    parameter: str,
    place: str,
    count: str | None,
    moved: str | None = None,
) -> None:
    """Define a load whose lane k is at p[place]; `place` contains {k}. `moved`: statements that
    fill `raw` by instructions of their own."""
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = loads_stores.raw_of(lanes, dtype)
        base = f"const {raw.element}* q = (const {raw.element}*)p;"
        if moved is not None:
            body = moved
        elif count is None:
            items = ", ".join(f"q[{place.format(k=k)}]" for k in range(lanes.count))
            twin = _TWINS.get(raw.element) if lanes.count > 1 else None
            if twin is None:
                body = f"{base} {raw.vector} raw = {{{items}}};"
            else:
                q = f"const {SCALARS[twin]}* q = (const {SCALARS[twin]}*)p;"
                body = f"{q} {raw.vector} raw = ({raw.vector})({lanes.type(twin)}){{{items}}};"
        else:
            body = (
                f"{base} {raw.vector} raw = {{}}; "
                f"for (long k = 0; k < count; k++) raw[k] = q[{place.format(k='k')}];"
            )
        tail = "" if count is None else ", long count"
        return (
            f"INLINE {register} {name}(const {element}* p, {parameter}{tail}) "
            f"{{ {body} return {loads_stores.widened(lanes, dtype, 'raw')}; }}"
        )

    key = f"{name}({element}, {parameter}{'' if count is None else ', count'})"
    lanes.need(key, text)


def _spread(
    lanes: Lanes, dtype: str, name: str, parameter: str, place: str, count: str | None
) -> None:
    """Define a store whose lane k goes to p[place]; `place` contains {k}."""
    element, register = lanes.storage(dtype), lanes.type(dtype)

    def text() -> str:
        raw = loads_stores.raw_of(lanes, dtype)
        base = (
            f"{raw.element}* q = ({raw.element}*)p; "
            f"{raw.vector} raw = {loads_stores.narrowed(lanes, dtype, 'value')};"
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


def is_near(lanes: int, step: Size) -> bool:
    """Whether elements this far apart are loaded as whole vectors, from which shuffles pick
    them."""
    return isinstance(step, int) and step != 1 and 1 <= abs(step) <= lanes // 2


def load_strided(
    lanes: Lanes, dtype: str, pointer: str, stride: str, count: str | None = None
) -> str:
    """Lane k from pointer[k*stride]. Lanes from `count` on are 0 without reading."""
    if lanes.count == 1:
        whole = loads_stores.load(lanes, dtype, pointer)
        return whole if count is None else loads_stores.load_partial(lanes, dtype, pointer, count)
    step = int(stride.strip("()")) if _NUMBER.fullmatch(stride) else 0
    if is_near(lanes.count, step):
        near = _load_near(lanes, dtype, step, partial=count is not None)
        if near is not None:
            return _call(near, pointer, count)
    name = f"load_strided{lanes.suffix}"
    _collect(lanes, dtype, name, "long stride", "{k} * stride", count)
    return _call(name, pointer, stride, count)


_NUMBER = re.compile(r"-?\d+|\(-\d+\)")


def _load_near(lanes: Lanes, dtype: str, step: int, *, partial: bool) -> str | None:
    """Define a load whose lane k is at p[k * step], of vectors that contain no other memory than
    that between the first and the last of these elements. Returns its name; None if a partial load
    would take a loop."""
    element, register = lanes.storage(dtype), lanes.type(dtype)
    raw = loads_stores.raw_of(lanes, dtype)
    parts = ""
    if partial and step > 0:
        parts = hardware.load(lanes, raw.vector, raw.size) or ""
    elif partial:
        other = f"{raw.vector}{{}}"
        parts = hardware.load_where(lanes, raw.vector, raw.size, "p", "bits", other) or ""
    if partial and not parts:
        return None
    name = f"load{lanes.suffix}_{'every' if step > 0 else 'back'}_{abs(step)}"
    tail = ", long count" if partial else ""

    def text() -> str:
        lines = _near_vectors(lanes, raw, step, parts)
        body = "\n".join(f"  {line}" for line in lines)
        result = loads_stores.widened(lanes, dtype, "taken")
        return (
            f"INLINE {register} {name}(const {element}* start{tail}) {{\n{body}\n"
            f"  return {result};\n}}"
        )

    lanes.need(f"{name}({element}{tail})", text)
    return name


def _near_vectors(lanes: Lanes, raw: Raw, step: int, parts: str) -> list[str]:
    """Statements: `taken` gets the elements from `start`, `step` apart. `parts` loads the first
    `count` elements at `p`, or backwards the lanes at `p` that `bits` has."""
    n, width = lanes.count, abs(step)
    forwards = bool(parts) and step > 0
    starts = [n * v for v in range(width)] if forwards else near_starts(n, width)
    first = f"(const {raw.element}*)start" + (f" - {(n - 1) * width}" if step < 0 else "")
    lines = [f"const {raw.element}* whole = {first};"]
    if forwards:
        lines.append(f"const long span = (count - 1) * {width} + 1;")
    elif parts:
        lines.append(f"const long from = ({n} - count) * {width};")
    unaligned = lanes.unaligned(raw.vector, raw.element, raw.size)
    for v, start in enumerate(starts):
        pointer = f"whole + {start}"
        if forwards:
            left = f"span < {start} ? 0 : span - {start} < {n} ? span - {start} : {n}"
            load = f"const {raw.element}* p = {pointer}; const long count = {left}; {parts}"
            lines.append(f"{raw.vector} v{v}; {{ {load} v{v} = raw; }}")
        elif parts:
            bits = f"from <= {start} ? -1L : from - {start} < {n} ? -1L << (from - {start}) : 0L"
            load = f"const {raw.element}* p = {pointer}; const long bits = {bits};"
            lines.append(f"{raw.vector} v{v}; {{ {load} v{v} = {parts}; }}")
        else:
            lines.append(f"const {raw.vector} v{v} = *(const {unaligned}*)({pointer});")
    places = [lane * width if step > 0 else (n - 1 - lane) * width for lane in range(n)]
    return [*lines, f"const {raw.vector} taken = {shuffled(places, starts)};"]


def near_starts(lanes: int, step: int) -> list[int]:
    """Where vectors begin that contain every `step`-th element and end with the last of them."""
    last = (lanes - 1) * step + 1 - lanes
    return [*(min(lanes * v, last) for v in range(step - 1)), last]


def shuffled(places: list[int], starts: list[int]) -> str:
    """The elements at these places, of vectors v0, v1, … that begin at the starts."""
    n = len(places)
    home = [min(place // n, len(starts) - 1) for place in places]
    taken = "v0"
    if len(starts) == 1:
        return f"__builtin_shufflevector(v0, v0, {', '.join(map(str, places))})"
    for v in range(1, len(starts)):
        order: list[int] = []
        for lane, place in enumerate(places):
            if home[lane] == v:
                order.append(n + place - starts[v])
            elif home[lane] == 0 and v == 1:
                order.append(place)
            else:
                order.append(lane)
        taken = f"__builtin_shufflevector({taken}, v{v}, {', '.join(map(str, order))})"
    return taken


def store_strided(
    lanes: Lanes, dtype: str, pointer: str, value: str, stride: str, count: str | None = None
) -> str:
    """Statement: lane k to pointer[k*stride], in the order of the lanes."""
    if lanes.count == 1:
        if count is not None:
            return loads_stores.store_partial(lanes, dtype, pointer, value, count)
        return loads_stores.store(lanes, dtype, pointer, value)
    _spread(lanes, dtype, "store_strided", "long stride", "{k} * stride", count)
    return _call("store_strided", pointer, stride, value, count) + ";"


def store_interleaved(
    lanes: Lanes, dtype: str, pointer: str, values: Sequence[str], count: str | None = None
) -> str:
    """Statement: lane k of value j to pointer[k*n + j], for n values and the first `count` lanes:
    whole vectors of shuffled elements. Touches no memory beyond them."""
    name, n, width = "store_interleaved", len(values), lanes.count
    element, register = lanes.storage(dtype), lanes.type(dtype)
    tail = "" if count is None else ", long count"

    def text() -> str:
        raw = loads_stores.raw_of(lanes, dtype)
        parameters = ", ".join(f"{register} r{k}" for k in range(n))
        lines = [
            f"const {raw.vector} v{k} = {loads_stores.narrowed(lanes, dtype, f'r{k}')};"
            for k in range(n)
        ]
        for vector in range(n):
            at = [vector * width + lane for lane in range(width)]
            places = [place % n * width + place // n for place in at]
            mixed = shuffled(places, [k * width for k in range(n)])
            if count is None:
                kind = lanes.unaligned(raw.vector, raw.element, raw.size)
                lines.append(f"*({kind}*)(start + {vector * width}) = {mixed};")
                continue
            left = f"all < {vector * width} ? 0 : all - {vector * width}"
            write = hardware.store(lanes, raw.size)
            write = write or f"__builtin_memcpy(p, &raw, count * {raw.size});"
            lines.append(
                f"{{ {raw.vector} raw = {mixed}; {element}* p = start + {vector * width}; "
                f"const long left = {left}; "
                f"const long count = left < {width} ? left : {width}; {write} }}"
            )
        if count is not None:
            lines.insert(0, f"const long all = count * {n};")
        body = "\n".join(f"  {line}" for line in lines)
        return f"INLINE void {name}({element}* start, {parameters}{tail}) {{\n{body}\n}}"

    lanes.need(f"{name}({element}, {n} {register}{tail})", text)
    return _call(name, pointer, *values, count) + ";"


def gather(lanes: Lanes, dtype: str, pointer: str, index: str, count: str | None = None) -> str:
    """Lane k from pointer[index[k]]. Lanes from `count` on are 0 without reading."""
    if lanes.count == 1:
        return load_strided(lanes, dtype, f"{pointer} + ({index})", "0", count)
    name = f"gather{lanes.suffix}"
    raw = loads_stores.raw_of(lanes, dtype)
    moved = hardware.gather(lanes, raw.vector, raw.size, count)
    parameter, place = f"{lanes.type('int64')} index", ""
    if moved is None:
        parameter, place = _places(lanes)
    _collect(lanes, dtype, name, parameter, place, count, moved)
    return _call(name, pointer, index, count)


def has_gather(lanes: Lanes, dtype: str) -> bool:
    """Whether the machine has a fast instruction for gathers of this dtype by int64."""
    raw = loads_stores.raw_of(lanes, dtype)
    return hardware.gather(lanes, raw.vector, raw.size, None) is not None


def gather_places(
    lanes: Lanes, dtype: str, pointer: str, places: str, stride: str, step: str
) -> str:
    """Lane k from pointer[places[k]*stride + k*step], with the places in memory."""
    name, place = f"gather{lanes.suffix}", "at[{k}] * stride + {k} * step"
    _collect(lanes, dtype, name, "const long* at, long stride, long step", place, None)
    return _call(name, pointer, places, stride, step)


def _places(lanes: Lanes) -> tuple[str, str]:
    """The parameter of indices and lane {k} of it, after a line that puts them in memory: a core
    loads a number there in less time than it takes it out of a vector."""
    register, name = lanes.type("int64"), f"place{lanes.count}_i64"
    lanes.need(
        f"{name}({register})",
        lambda: (
            f"struct {name} {{\n"
            f"    long at[{lanes.count}] __attribute__((aligned(8)));\n"
            f"    INLINE {name}({register} index) {{\n"
            f"        *({lanes.unaligned(register, 'long', 8)}*)at = index;\n"
            '        asm("" : "+m"(at));\n'
            "    }\n};"
        ),
    )
    return f"{name} index", "index.at[{k}]"


def scatter(
    lanes: Lanes, dtype: str, pointer: str, index: str, value: str, count: str | None = None
) -> str:
    """Statement: lane k to pointer[index[k]], in lane order: the last duplicate wins."""
    if lanes.count == 1:
        return store_strided(lanes, dtype, f"{pointer} + ({index})", value, "0", count)
    _spread(lanes, dtype, "scatter", *_places(lanes), count)
    return _call("scatter", pointer, index, value, count) + ";"
