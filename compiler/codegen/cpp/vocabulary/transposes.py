"""Transposes of as many registers as a register has lanes, by halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compiler.loops.dtypes import compute_dtype

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def transpose(lanes: Lanes, registers: Sequence[str], dtype: str) -> str:
    """Lane j of register k and lane k of register j change places.

    Step `half` swaps the off-diagonal blocks of each 2*half square: two shuffles for each pair of
    registers, so that 16 x 16 takes 64.
    """
    if lanes.count == 1:
        return ";"
    register, n = lanes.type(dtype), lanes.count
    names = [f"r{k}" for k in range(n)]

    def text() -> str:
        lines, half = [f"  {register} t;"], n // 2
        while half:
            for row in range(n):
                if row & half:
                    continue
                a, b = names[row], names[row + half]
                low = [lane if not lane & half else n + lane - half for lane in range(n)]
                high = [lane + half if not lane & half else n + lane for lane in range(n)]
                lines.append(
                    f"  t = __builtin_shufflevector({a}, {b}, {', '.join(map(str, low))});"
                    f" {b} = __builtin_shufflevector({a}, {b}, {', '.join(map(str, high))});"
                    f" {a} = t;"
                )
            half //= 2
        parameters = ", ".join(f"{register}& {name}" for name in names)
        body = "\n".join(lines)
        return f"INLINE void transpose({parameters}) {{\n{body}\n}}"

    lanes.need(f"transpose({register})", text)
    return f"transpose({', '.join(registers)});"


def transpose_tile(
    lanes: Lanes, dtype: str, pointer: str, stride: str, block: str, width: str
) -> str:
    """From memory through registers into a block of the compute dtype."""
    name, wide = f"transpose_tile{lanes.suffix}", compute_dtype(dtype)
    element, stored = lanes.storage(dtype), lanes.storage(wide)
    registers = [f"r{k}" for k in range(lanes.count)]
    loads = [lanes.load(dtype, f"p + {k} * stride") for k in range(lanes.count)]
    turned = lanes.transpose(registers, wide)
    stores = [lanes.store(wide, f"block + {k} * width", r) for k, r in enumerate(registers)]

    def text() -> str:
        pairs = zip(registers, loads, strict=True)
        lines = [f"{lanes.type(wide)} {r} = {value};" for r, value in pairs]
        body = "\n".join(f"  {line}" for line in (*lines, turned, *stores))
        parameters = f"const {element}* p, long stride, {stored}* block, long width"
        return f"INLINE void {name}({parameters}) {{\n{body}\n}}"

    lanes.need(f"{name}({element}, {stored})", text)
    return f"{name}({pointer}, {stride}, {block}, {width});"


def transpose_edge(
    lanes: Lanes,
    dtype: str,
    pointer: str,
    stride: str,
    block: str,
    width: str,
    left: tuple[str, str],
) -> str:
    """One element at a time: edges are few."""
    name, wide = f"transpose_edge{lanes.suffix}", compute_dtype(dtype)
    scalar = lanes.vocabulary.lanes(1)
    element, stored = lanes.storage(dtype), lanes.storage(wide)
    store = scalar.store(
        wide, "(block + j * width + k)", scalar.load(dtype, "(p + k * stride + j)")
    )

    def text() -> str:
        return (
            f"OUTLINE void {name}(const {element}* p, long stride, {stored}* block, long width, "
            f"long rows, long columns) {{\n"
            f"  for (long k = 0; k < columns && k < {lanes.count}; k++)\n"
            f"    for (long j = 0; j < rows && j < {lanes.count}; j++) {store}\n}}"
        )

    lanes.need(f"{name}({element}, {stored})", text)
    return f"{name}({pointer}, {stride}, {block}, {width}, {', '.join(left)});"
