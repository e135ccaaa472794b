"""Comparisons and logic: bool from any dtype.

The operands are compared in their promoted dtype. Sources:
aten/src/ATen/native/cpu/BinaryOpsKernel.cpp, UnaryOpsKernel.cpp.
"""

from __future__ import annotations

import math

from tcw.compiler.lowering.elements import (
    Element,
    apply,
    binary,
    elementwise,
    eq,
    isinf,
    isnan,
    number,
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
