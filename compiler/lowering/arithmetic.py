"""Sums, products, quotients, remainders and rounding.

Sources: aten/src/ATen/native/cpu/BinaryOpsKernel.cpp, BinaryOps.cpp, PointwiseOpsKernel.cpp,
LerpKernel.cpp, UnaryOpsKernel.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import (
    Element,
    Operand,
    apply,
    binary,
    copysign,
    elementwise,
    eq,
    exp2,
    formula_map,
    larger,
    nearest,
    sign,
    smaller,
    together,
    unary,
    where,
)
from tcw.compiler.lowering.registry import NoLowering, lowers
from tcw.compiler.lowering.tensors import Tensor


@elementwise("add")
def add(x: Operand, y: Operand, alpha: Operand = 1) -> Element:
    """x + alpha*y, rounded once for floats, as in ATen's vectorised kernel."""
    x, y = together(x, y)
    if x.dtype == "bool":
        return x | y if not isinstance(alpha, Element) and alpha else x
    if not isinstance(alpha, Element) and alpha == 1:
        return x + y
    return apply("fma", y, alpha, x) if x.is_float else x + y * alpha


@elementwise("sub")
def subtract(x: Operand, y: Operand, alpha: Operand = 1) -> Element:
    x, y = together(x, y)
    if not isinstance(alpha, Element) and alpha == 1:
        return x - y
    return apply("fma", y, -alpha, x) if x.is_float else x - y * alpha


@elementwise("mul")
def multiply(x: Operand, y: Operand) -> Element:
    x, y = together(x, y)
    return x & y if x.dtype == "bool" else x * y


@elementwise("div", "true_divide", "divide")
def divide(x: Operand, y: Operand, rounding_mode: str | None = None) -> Element:
    if rounding_mode == "floor":
        return apply("floor_divide", x, y)
    if rounding_mode == "trunc":
        return apply("trunc_divide", x, y)
    return x / y if isinstance(x, Element) else apply("div", x, y)


for _name in ("remainder", "fmod", "hypot"):
    elementwise(_name)(binary(_name))
elementwise("reciprocal")(unary("reciprocal"))


@elementwise("neg", "negative")
def negate(x: Element) -> Element:
    return -x


@elementwise("abs", "absolute")
def absolute(x: Element) -> Element:
    return x if x.dtype in ("bool", "uint8") else abs(x)


@elementwise("square")
def square(x: Element) -> Element:
    return x & x if x.dtype == "bool" else x * x


@elementwise("sign")
def signum(x: Element) -> Element:
    return x if x.dtype == "bool" else sign(x)


@elementwise("positive", "conj_physical", "prims.convert_element_type")
def same(x: Element, dtype: object = None) -> Element:
    """The element unchanged; storing it converts it to the output's dtype."""
    return x


@elementwise("addcmul")
def addcmul(x: Element, y: Element, z: Element, value: Operand = 1) -> Element:
    return x + (y if _is_one(value) else value * y) * z


@elementwise("addcdiv")
def addcdiv(x: Element, y: Element, z: Element, value: Operand = 1) -> Element:
    return x + ((y if _is_one(value) else value * y) / z)


def _is_one(value: Operand) -> bool:
    return not isinstance(value, Element) and value == 1


@elementwise("lerp")
def lerp(start: Element, end: Element, weight: Operand) -> Element:
    """Computed from the nearer end, so that weights 0 and 1 are exact (ATen/native/Lerp.h)."""
    if isinstance(weight, Element):
        near = apply("lt", abs(weight), 0.5)
        difference = end - start
        low = start + weight * difference
        return where(near, low, end - difference * (1 - weight))
    if abs(weight) < 0.5:
        return start + weight * (end - start)
    return end - (end - start) * (1 - weight)


@elementwise("ldexp")
def ldexp(x: Element, exponent: Element) -> Element:
    """x * 2**exponent with the power rounded first, as in ATen."""
    return x * exp2(exponent)


@elementwise("copysign")
def copy_sign(x: Operand, y: Operand) -> Element:
    x, y = together(x, y)
    return copysign(x, y)


@elementwise("angle")
def angle(x: Element) -> Element:
    """0 or pi, the argument of a real number; NaN propagates."""
    if not x.is_float:
        raise NoLowering("angle of integers")
    return where(x < 0, math.pi, where(eq(x, x), x * 0, x))


elementwise("maximum", "max.other")(larger)
elementwise("minimum", "min.other")(smaller)


@elementwise("fmax")
def fmax(x: Element, y: Element) -> Element:
    return apply("fmax", x, y) if x.is_float else larger(x, y)


@elementwise("fmin")
def fmin(x: Element, y: Element) -> Element:
    return apply("fmin", x, y) if x.is_float else smaller(x, y)


def _of_floats(name: str) -> Callable[[Element], Element]:
    return lambda x: apply(name, x) if x.is_float else x


for _names in (("floor",), ("ceil",), ("trunc", "fix")):
    elementwise(*_names)(_of_floats(_names[0]))


@lowers("round")
def round_to(builder: Builder, x: Tensor, decimals: int = 0) -> Tensor:
    """Round half to even; `decimals` scales by a power of ten."""
    scale = 10.0 ** abs(decimals)

    def formula(element: Element) -> Element:
        if not element.is_float or not decimals:
            return nearest(element) if element.is_float else element
        if decimals > 0:
            return nearest(element * scale) / scale
        return nearest(element / scale) * scale

    return formula_map(builder, formula, (x,))
