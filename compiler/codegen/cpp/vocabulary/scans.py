"""Prefix scans within a register: log2(lanes) shifted combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.loops.dtypes import compute_dtype

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def scan(lanes: Lanes, op: str, vector: str, dtype: str) -> str:
    """Lane k: lanes 0 to k, combined by sum, prod, max or min."""
    held = compute_dtype(dtype)
    if lanes.count == 1:
        return vector
    register, name = lanes.type(held), f"scan_{op}"
    name += "_bool" if held == "bool" and op not in ("any", "all") else ""

    def text() -> str:
        neutral = lanes.identity(op, held)
        steps, distance = [f"{register} neutral = {neutral}, w;"], 1
        while distance < lanes.count:
            order = [*[lanes.count] * distance, *range(lanes.count - distance)]
            shuffle = f"__builtin_shufflevector(v, neutral, {', '.join(map(str, order))})"
            steps.append(f"w = {shuffle};")
            steps.append(f"v = {lanes.combine(op, 'w', 'v', held)};")
            distance *= 2
        return f"INLINE {register} {name}({register} v) {{ {' '.join(steps)} return v; }}"

    lanes.need(f"{name}({register})", text)
    return f"{name}({vector})"


def last(lanes: Lanes, vector: str, dtype: str) -> str:
    """The last lane, as a scalar register: what the next step's carry adds."""
    if lanes.count == 1:
        return vector
    end = f"({vector})[{lanes.count - 1}]"
    return f"({end} != 0)" if dtype == "bool" else end
