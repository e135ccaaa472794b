"""argmax and argmin: a best value with its index in each lane, and the winner among the lanes.

ATen's order (aten/src/ATen/native/SharedReduceOps.h): NaN before every number, then the greater
(or lesser) value, then the smaller index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import conversions, reductions
from tcw.compiler.codegen.cpp.vocabulary.types import SCALARS
from tcw.compiler.loops.dtypes import BYTES, FLOATS, compute_dtype, limits

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


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


def update(
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
        mask = lanes.type("int64")  # what comparing gives; narrowed and widened, it takes longer
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


def reduce(lanes: Lanes, op: str, best: str, best_index: str, dtype: str) -> str:
    """The winning index among the lanes, as a `long`: the least of the indices of the best value,
    which `reduce` (max or min) finds."""
    if lanes.count == 1:
        return best_index
    held, index_dtype = compute_dtype(dtype), lanes.index_dtype
    register, indices = lanes.type(held), lanes.type(index_dtype)
    name = f"{op}_lanes" + ("_bool" if held == "bool" else "")

    def text() -> str:
        top = reductions.reduce(lanes, op.removeprefix("arg"), "best", held)
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
            f"  return {reductions.reduce(lanes, 'min', 'places', index_dtype)};\n}}"
        )

    lanes.need(f"{name}({register}, {indices})", text)
    return f"{name}({best}, {best_index})"
