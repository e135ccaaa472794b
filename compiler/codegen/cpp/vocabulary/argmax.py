"""argmax and argmin: a best value with its index in each lane, and the winner among the lanes.

ATen's order (aten/src/ATen/native/SharedReduceOps.h): NaN before every number, then the greater
(or lesser) value, then the smaller index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.codegen.cpp.vocabulary import conversions
from compiler.codegen.cpp.vocabulary.types import SCALARS
from compiler.loops.dtypes import FLOATS, compute_dtype

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def _better(lanes: Lanes, op: str, dtype: str, a: str, b: str) -> str:
    """Whether a ranks before b, regardless of their indices."""
    if dtype == "bool" and lanes.count > 1:
        symbol = "<" if op == "argmax" else ">"
    else:
        symbol = ">" if op == "argmax" else "<"
    if dtype in FLOATS:
        return f"({a} {symbol} {b}) | (({a} != {a}) & ({b} == {b}))"
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
    index_dtype: str,
) -> str:
    """The update with one vector."""
    held = compute_dtype(dtype)
    register, indices, mask = lanes.type(held), lanes.type(index_dtype), lanes.type("bool")
    name = f"{op}_update" + ("_bool" if held == "bool" else "")
    comparison = conversions.to_mask(lanes, _better(lanes, op, held, "value", "best"), held)
    lanes.need(
        f"{name}({register}, {indices})",
        lambda: (
            f"INLINE void {name}({register}& best, {indices}& best_index, "
            f"{register} value, {indices} index) {{\n  {mask} better = {comparison};\n"
            f"  best = {_select(lanes, 'better', 'value', 'best', held)};\n"
            f"  best_index = {_select(lanes, 'better', 'index', 'best_index', index_dtype)};\n}}"
        ),
    )
    return f"{name}({best}, {best_index}, {value}, {index});"


def reduce(lanes: Lanes, op: str, best: str, best_index: str, dtype: str, index_dtype: str) -> str:
    """The winner among the lanes."""
    if lanes.count == 1:
        return best_index
    held = compute_dtype(dtype)
    register, indices = lanes.type(held), lanes.type(index_dtype)
    scalar, name = SCALARS[held], f"{op}_lanes" + ("_bool" if held == "bool" else "")
    single = lanes.vocabulary.lanes(1)
    kind = "int" if held == "bool" else scalar
    value = f"({kind})-best[k]" if held == "bool" else "best[k]"
    ahead, behind = (_better(single, op, held, *pair) for pair in (("v", "top"), ("top", "v")))

    def text() -> str:
        return (
            f"INLINE long {name}({register} best, {indices} best_index) {{\n"
            f"  {kind} top = {value.replace('[k]', '[0]')}; long winner = best_index[0];\n"
            f"  for (int k = 1; k < {lanes.count}; k++) {{\n"
            f"    {kind} v = {value}; bool ahead = {ahead}, behind = {behind};\n"
            f"    if (ahead || (!behind && best_index[k] < winner)) "
            f"{{ top = v; winner = best_index[k]; }}\n  }}\n  return winner;\n}}"
        )

    lanes.need(f"{name}({register}, {indices})", text)
    return f"{name}({best}, {best_index})"
