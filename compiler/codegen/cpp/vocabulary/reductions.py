"""Reductions across the lanes of a register, by halves, and scans within it, by log2(lanes) shifted
combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import hardware
from tcw.compiler.codegen.cpp.vocabulary.types import SCALARS
from tcw.compiler.loops.dtypes import BYTES, compute_dtype

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

OPERATOR = {
    "sum": "add",
    "prod": "mul",
    "max": "maximum",
    "min": "minimum",
    "any": "bitwise_or",
    "all": "bitwise_and",
    "max_quick": "max_quick",
    "min_quick": "min_quick",
}
"""The operator that combines two partial results."""


NARROWEST = 16
"""Bytes of the narrowest vector. Halves above it are vectors of their own: shuffles within 16 bytes
take a third of the cycles of those across a register, and some cores add wide vectors in two."""


def _halved(lanes: Lanes, op: str, held: str) -> str:
    """The statement that combines the halves of `v` and reduces the result."""
    half = lanes.vocabulary.lanes(lanes.count // 2)
    order = [str(lane) for lane in range(lanes.count)]
    low, high = (
        f"__builtin_shufflevector(v, v, {', '.join(part)})"
        for part in (order[: half.count], order[half.count :])
    )
    combined = half.combine(op, low, high, held)
    return f"return {half.reduce(op, combined, held)};"


def reduce(lanes: Lanes, op: str, vector: str, dtype: str) -> str:
    """Reduce the lanes of a register to one scalar register, in a fixed order: combine lane k with
    lane k + half until one is left."""
    held = compute_dtype(dtype)
    if lanes.count == 1:
        return vector
    register, name = lanes.type(held), _named("lanes", op, held)

    def text() -> str:
        test = hardware.any_lane(lanes) if held == "bool" else None
        if test is not None:
            if op in ("all", "min", "min_quick"):
                return (
                    f"INLINE bool {name}({register} u) {{ {register} v = ~u; return !({test}); }}"
                )
            return f"INLINE bool {name}({register} v) {{ return {test}; }}"
        steps, half = [], lanes.count // 2
        if held != "bool" and BYTES[held] * lanes.count > NARROWEST:
            return f"INLINE {SCALARS[held]} {name}({register} v) {{ {_halved(lanes, op, held)} }}"
        while half:
            order = [*range(half, lanes.count), *range(half)]
            shuffle = f"__builtin_shufflevector(v, v, {', '.join(map(str, order))})"
            steps.append(f"w = {shuffle}; v = {lanes.combine(op, 'v', 'w', held)};")
            half //= 2
        result = "v[0] != 0" if held == "bool" else "v[0]"
        body = " ".join(steps)
        return (
            f"INLINE {SCALARS[held]} {name}({register} v) "
            f"{{ {register} w; {body} return {result}; }}"
        )

    lanes.need(f"{name}({register})", text)
    return f"{name}({vector})"


def _named(what: str, op: str, held: str) -> str:
    """A function's name: bool masks and 32-bit integers share one C++ type, but differ in the
    meaning of sum and max."""
    return f"{what}_{op}{'_bool' if held == 'bool' and op not in ('any', 'all') else ''}"


def scan(lanes: Lanes, op: str, vector: str, dtype: str) -> str:
    """Lane k: lanes 0 to k, combined by sum, prod, max or min."""
    held = compute_dtype(dtype)
    if lanes.count == 1:
        return vector
    register, name = lanes.type(held), _named("scan", op, held)

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
