"""Comparisons, logic, bits and choices between elements (where, clamps, masks).

Operands are compared in their promoted dtype. On bool, bitwise operations are the logical ones; a
shift by a negative count, or by at least the bit width, leaves only the sign. Sources:
aten/src/ATen/native/cpu/{BinaryOps,UnaryOps,TensorCompare}Kernel.cpp, torch/_refs/__init__.py.
"""

from __future__ import annotations

import math

from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.lowering.elements import (
    Element,
    Operand,
    apply,
    binary,
    elementwise,
    eq,
    isinf,
    isnan,
    larger,
    number,
    smaller,
    together,
    unary,
    where,
)

for _names in (
    *(("eq",), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal")),
    *(("gt", "greater"), ("ge", "greater_equal")),
):
    elementwise(*_names, compares=True)(binary(_names[0]))


@elementwise("isnan", compares=True)
def is_nan(x: Element) -> Element:
    return isnan(x) if x.is_float else number(False, "bool")


@elementwise("isinf", compares=True)
def is_inf(x: Element) -> Element:
    return isinf(x) if x.is_float else number(False, "bool")


@elementwise("isfinite", compares=True)
def is_finite(x: Element) -> Element:
    return abs(x) < math.inf if x.is_float else number(True, "bool")


@elementwise("isreal", compares=True)
def is_real(x: Element) -> Element:
    return number(True, "bool")


@elementwise("signbit", compares=True)
def sign_bit(x: Element) -> Element:
    if x.is_float:
        return apply("signbit", x)
    return number(False, "bool") if x.dtype in ("bool", "uint8") else x < 0


@elementwise("logical_and", raw=(0, 1))
def logical_and(x: Element, y: Element) -> Element:
    return x.to("bool") & y.to("bool")


@elementwise("logical_or", raw=(0, 1))
def logical_or(x: Element, y: Element) -> Element:
    return x.to("bool") | y.to("bool")


@elementwise("logical_xor", raw=(0, 1))
def logical_xor(x: Element, y: Element) -> Element:
    return x.to("bool") ^ y.to("bool")


@elementwise("logical_not", raw=(0,))
def logical_not(x: Element) -> Element:
    return eq(x, 0) if x.dtype != "bool" else ~x


@elementwise("where.self", "where.ScalarSelf", "where.ScalarOther", raw=(0,))
def choose(condition: Element, x: Operand, y: Operand) -> Element:
    return where(condition.to("bool"), x, y)


@elementwise("masked_fill", raw=(1,))
def masked_fill(x: Element, mask: Element, value: Operand) -> Element:
    return where(mask.to("bool"), value, x)


@elementwise("clamp", "clip")
def clamp(x: Element, low: Operand | None = None, high: Operand | None = None) -> Element:
    """min(max(x, low), high); NaN in any of them propagates."""
    if low is not None:
        x = larger(low, x)
    return x if high is None else smaller(high, x)


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
