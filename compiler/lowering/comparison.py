"""Comparisons and logic: bool from any dtype.

The operands are compared in their promoted dtype. Sources:
aten/src/ATen/native/cpu/BinaryOpsKernel.cpp, UnaryOpsKernel.cpp.
"""

from __future__ import annotations

import math

from compiler.lowering.elements import (
    Element,
    Operand,
    apply,
    elementwise,
    eq,
    isinf,
    isnan,
    ne,
    number,
)


@elementwise("eq", compares=True)
def equal(x: Operand, y: Operand) -> Element:
    return eq(x, y)


@elementwise("ne", "not_equal", compares=True)
def not_equal(x: Operand, y: Operand) -> Element:
    return ne(x, y)


@elementwise("lt", "less", compares=True)
def less(x: Operand, y: Operand) -> Element:
    return apply("lt", x, y)


@elementwise("le", "less_equal", compares=True)
def less_equal(x: Operand, y: Operand) -> Element:
    return apply("le", x, y)


@elementwise("gt", "greater", compares=True)
def greater(x: Operand, y: Operand) -> Element:
    return apply("gt", x, y)


@elementwise("ge", "greater_equal", compares=True)
def greater_equal(x: Operand, y: Operand) -> Element:
    return apply("ge", x, y)


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
