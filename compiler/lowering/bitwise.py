"""Bitwise operations on integers; on bool they are the logical operators.

A shift by a negative count, or by at least the bit width, leaves only the sign. Source:
aten/src/ATen/native/cpu/BinaryOpsKernel.cpp.
"""

from __future__ import annotations

from compiler.loops.dtypes import BYTES
from compiler.lowering.elements import Element, Operand, apply, elementwise, together, where


@elementwise("bitwise_and", "__and__")
def bitwise_and(x: Operand, y: Operand) -> Element:
    return apply("bitwise_and", x, y)


@elementwise("bitwise_or", "__or__")
def bitwise_or(x: Operand, y: Operand) -> Element:
    return apply("bitwise_or", x, y)


@elementwise("bitwise_xor", "__xor__")
def bitwise_xor(x: Operand, y: Operand) -> Element:
    return apply("bitwise_xor", x, y)


@elementwise("bitwise_not")
def bitwise_not(x: Element) -> Element:
    return ~x


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
