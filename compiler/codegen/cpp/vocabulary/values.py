"""Registers not loaded from memory: a scalar in every lane, counting lanes, and lane masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary.types import SCALARS
from tcw.compiler.loops.dtypes import REDUCED

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


def broadcast(lanes: Lanes, scalar: str, dtype: str) -> str:
    """A scalar register's value in every lane."""
    if lanes.count == 1:
        return scalar
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


def iota(lanes: Lanes, start: str, dtype: str = "int64") -> str:
    """start, start+1, ... in the lanes, of an integer dtype."""
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
    """A mask of the lanes below `count`."""
    if lanes.count == 1:
        return f"({count}) > 0"
    mask, name = lanes.type("bool"), f"first{lanes.suffix}"
    steps = ", ".join(map(str, range(lanes.count)))
    lanes.need(
        name,
        lambda: f"INLINE {mask} {name}(long count) {{ return {mask}{{{steps}}} < (int)count; }}",
    )
    return f"{name}({count})"
