"""Reductions across the lanes of a register, by halves, and scans within it, by log2(lanes) shifted
steps; argmax and argmin, in ATen's order (aten/src/ATen/native/SharedReduceOps.h): NaN before every
number, then the greater (or lesser) value, then the smaller index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import conversions, hardware
from tcw.compiler.codegen.cpp.vocabulary.types import SCALARS
from tcw.compiler.loops.dtypes import BYTES, FLOATS, compute_dtype, limits

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


def _better(lanes: Lanes, op: str, dtype: str, a: str, b: str) -> str:
    """Whether a ranks before b, regardless of their indices."""
    if dtype == "bool" and lanes.count > 1:
        symbol = "<" if op == "argmax" else ">"
    else:
        symbol = ">" if op == "argmax" else "<"
    if dtype in FLOATS:  # true for a NaN before a number
        no = "!" if lanes.count == 1 else "~"
        return f"{no}({b} {symbol}= {a}) & ({b} == {b})"
    return f"{a} {symbol} {b}"


def _select(lanes: Lanes, mask: str, a: str, b: str, dtype: str) -> str:
    return lanes.apply("where", (mask, a, b), ("bool", dtype, dtype), dtype)


def arg_update(
    lanes: Lanes,
    op: str,
    best: str,
    best_index: str,
    value: str,
    index: str,
    dtype: str,
    index_dtype: str | None = None,
) -> str:
    """Statement: one step of argmax or argmin. Each index must exceed the previous ones.

    `best` and `best_index` (of `index_dtype`, by default `lanes.index_dtype`) are variables.
    Initialise them with the first elements, or with the identity of max or min and the indices of
    the first vector. The first of equal values wins, and NaN wins over all, as in ATen.
    """
    held, index_dtype = compute_dtype(dtype), index_dtype or lanes.index_dtype
    register, indices = lanes.type(held), lanes.type(index_dtype)
    name = f"{op}_update" + ("_bool" if held == "bool" else "")
    comparison = _better(lanes, op, held, "value", "best")
    if lanes.count > 1 and BYTES[held] == BYTES[index_dtype] == 8:
        mask = lanes.type("int64")  # the comparison's mask; narrowing and widening it is slower
        selected = "better ? value : best", "better ? index : best_index"
    else:
        mask, comparison = lanes.type("bool"), conversions.to_mask(lanes, comparison, held)
        selected = (
            _select(lanes, "better", "value", "best", held),
            _select(lanes, "better", "index", "best_index", index_dtype),
        )
    lanes.need(
        f"{name}({register}, {indices})",
        lambda: (
            f"INLINE void {name}({register}& best, {indices}& best_index, "
            f"{register} value, {indices} index) {{\n  {mask} better = {comparison};\n"
            f"  best = {selected[0]};\n  best_index = {selected[1]};\n}}"
        ),
    )
    return f"{name}({best}, {best_index}, {value}, {index});"


def arg_reduce(lanes: Lanes, op: str, best: str, best_index: str, dtype: str) -> str:
    """The winning index among the lanes, as a `long`: the least of the indices of the best value,
    which `reduce` (max or min) finds."""
    if lanes.count == 1:
        return best_index
    held, index_dtype = compute_dtype(dtype), lanes.index_dtype
    register, indices = lanes.type(held), lanes.type(index_dtype)
    name = f"{op}_lanes" + ("_bool" if held == "bool" else "")

    def text() -> str:
        top = reduce(lanes, op.removeprefix("arg"), "best", held)
        equal = lanes.apply("eq", ("best", lanes.broadcast("top", held)), (held, held), "bool")
        if held in FLOATS:  # the best of all is NaN if one is
            nan = lanes.apply("ne", ("best", "best"), (held, held), "bool")
            equal = lanes.apply("bitwise_or", (equal, nan), ("bool", "bool"), "bool")
        last = lanes.constant(limits(index_dtype)[1], index_dtype)
        places = _select(lanes, "winners", "best_index", last, index_dtype)
        return (
            f"INLINE long {name}({register} best, {indices} best_index) {{\n"
            f"  const {SCALARS[held]} top = {top};\n"
            f"  const {lanes.type('bool')} winners = {equal};\n"
            f"  const {indices} places = {places};\n"
            f"  return {reduce(lanes, 'min', 'places', index_dtype)};\n}}"
        )

    lanes.need(f"{name}({register}, {indices})", text)
    return f"{name}({best}, {best_index})"
