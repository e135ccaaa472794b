"""Prefix scans within a register: log2(lanes) shifted combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import reductions
from compiler.loops.dtypes import compute_dtype

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def _shifted(count: int, distance: int, reverse: bool) -> str:
    """A shuffle: lane k takes lane k - distance, or from the second operand if there is none."""
    if reverse:
        order = [lane + distance for lane in range(count)]
    else:
        order = [lane - distance if lane >= distance else count for lane in range(count)]
    return ", ".join(str(min(lane, count)) for lane in order)


def scan(lanes: Lanes, op: str, vector: str, dtype: str, *, reverse: bool = False) -> str:
    """Lane 0 op ... op lane k in every lane k; in reverse, from the last lane on."""
    held = compute_dtype(dtype)
    if lanes.count == 1:
        return vector
    register, name = lanes.type(held), f"scan_{op}{'_reverse' if reverse else ''}"
    name += "_bool" if held == "bool" and op not in ("any", "all") else ""

    def text() -> str:
        neutral = lanes.constant(reductions.identity(op, held), held)
        steps, distance = [f"{register} neutral = {neutral}, w;"], 1
        while distance < lanes.count:
            order = _shifted(lanes.count, distance, reverse)
            steps.append(f"w = __builtin_shufflevector(v, neutral, {order});")
            steps.append(f"v = {lanes.combine(op, 'w', 'v', held)};")
            distance *= 2
        return f"INLINE {register} {name}({register} v) {{ {' '.join(steps)} return v; }}"

    lanes.need(f"{name}({register})", text)
    return f"{name}({vector})"


def last(lanes: Lanes, vector: str, dtype: str, *, reverse: bool = False) -> str:
    """The last lane; in reverse, the first."""
    if lanes.count == 1:
        return vector
    end = f"({vector})[{0 if reverse else lanes.count - 1}]"
    return f"({end} != 0)" if dtype == "bool" else end
