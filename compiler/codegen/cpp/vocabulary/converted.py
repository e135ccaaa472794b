"""Loads that convert elements of 8 bytes to 4, for vectors that are too small for the wide
elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import conversions
from tcw.compiler.codegen.cpp.vocabulary.types import CODES

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


def load(
    lanes: Lanes, source: str, dtype: str, pointer: str, stride: str | None, count: str | None
) -> str:
    """Elements of a `source` that is too wide for this many lanes, converted to `dtype`. A `stride`
    of None is 1.

    A whole vector as two converted halves; a part of one, or strided ones, lane by lane. Lanes from
    `count` on are 0 without reading.
    """
    name, element, register = (
        f"load{lanes.suffix}_{CODES[dtype]}",
        lanes.storage(source),
        lanes.type(dtype),
    )
    if stride is None and count is None:
        lanes.need(f"{name}({element})", lambda: _halves(lanes, source, dtype, name))
        return f"{name}({pointer})"

    def text() -> str:
        scalar = lanes.vocabulary.lanes(1)
        one = conversions.cast(scalar, "p[lane * stride]", source, dtype)
        return (
            f"INLINE {register} {name}(const {element}* p, long stride, long count) "
            f"{{ {register} raw = {{}}; "
            f"for (long lane = 0; lane < count; lane++) raw[lane] = {one}; return raw; }}"
        )

    lanes.need(f"{name}({element}, stride, count)", text)
    return f"{name}({pointer}, {stride or 1}, {count or lanes.count})"


def _halves(lanes: Lanes, source: str, dtype: str, name: str) -> str:
    size = lanes.count // 2
    half = lanes.vocabulary.lanes(size)
    parts = []
    for start in ("p", f"p + {size}"):
        wide = half.load(source, start)
        parts.append(conversions.cast(half, wide, source, dtype))
    places = ", ".join(map(str, range(lanes.count)))
    return (
        f"INLINE {lanes.type(dtype)} {name}(const {lanes.storage(source)}* p) "
        f"{{ return __builtin_shufflevector({parts[0]}, {parts[1]}, {places}); }}"
    )
