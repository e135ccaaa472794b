"""Prefix scans within a register: log2(lanes) shifted combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import reductions
from compiler.loops.dtypes import compute_dtype

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def scan(lanes: Lanes, op: str, vector: str, carry: str, dtype: str) -> str:
    """carry op lane 0 op ... op lane k, in every lane k."""
    held = compute_dtype(dtype)
    if lanes.count == 1:
        return lanes.combine(op, carry, vector, held)
    register, name = lanes.type(held), f"scan_{op}"
    name += "_bool" if held == "bool" and op not in ("any", "all") else ""

    def text() -> str:
        neutral = lanes.constant(reductions.identity(op, held), held)
        steps, distance = [f"{register} neutral = {neutral}, w;"], 1
        while distance < lanes.count:
            order = [
                lane - distance if lane >= distance else lanes.count for lane in range(lanes.count)
            ]
            shuffle = f"__builtin_shufflevector(v, neutral, {', '.join(map(str, order))})"
            steps.append(f"w = {shuffle}; v = {lanes.combine(op, 'w', 'v', held)};")
            distance *= 2
        return (
            f"INLINE {register} {name}({register} v, {register} carry) "
            f"{{ {' '.join(steps)} return {lanes.combine(op, 'carry', 'v', held)}; }}"
        )

    start = lanes.broadcast(carry, held)
    lanes.need(f"{name}({register})", text)
    return f"{name}({vector}, {start})"


def last(lanes: Lanes, vector: str, dtype: str) -> str:
    """The last lane."""
    if lanes.count == 1:
        return vector
    end = f"({vector})[{lanes.count - 1}]"
    return f"({end} != 0)" if dtype == "bool" else end
