"""Bitwise operations on integers; on bool they are the logical operators.

A shift by a negative count, or by at least the bit width, leaves only the sign. Source:
aten/src/ATen/native/cpu/BinaryOpsKernel.cpp.
"""

from __future__ import annotations

from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.lowering.elements import (
    Element,
    Operand,
    apply,
    binary,
    elementwise,
    together,
    unary,
    where,
)

for _name in ("and", "or", "xor"):
    elementwise(f"bitwise_{_name}", f"__{_name}__")(binary(f"bitwise_{_name}"))
elementwise("bitwise_not")(unary("bitwise_not"))


@elementwise("bitwise_left_shift", "__lshift__")
def shift_left(x: Operand, y: Operand) -> Element:
    count = None if isinstance(y, Element) else y
    x, y = together(x, y)
    bits = 8 * BYTES[x.dtype]
    if count is not None:
        return apply("shift_left", x, y) if 0 <= count < bits else x & 0
    inside = _inside(y, bits)
    return where(inside, apply("shift_left", x, where(inside, y, 0)), 0)


@elementwise("bitwise_right_shift", "__rshift__")
def shift_right(x: Operand, y: Operand) -> Element:
    count = None if isinstance(y, Element) else y
    x, y = together(x, y)
    bits = 8 * BYTES[x.dtype]
    unsigned = x.dtype == "uint8"
    if count is not None:
        if not 0 <= count < bits:
            return x & 0 if unsigned else apply("shift_right", x, bits - 1)
        return apply("shift_right", x, y)
    inside = _inside(y, bits)
    if unsigned:
        return where(inside, apply("shift_right", x, where(inside, y, 0)), 0)
    return apply("shift_right", x, where(inside, y, bits - 1))


def _inside(count: Element, bits: int) -> Element:
    if count.dtype == "uint8":
        return count < bits
    return (count >= 0) & (count < bits)
