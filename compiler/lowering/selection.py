"""Choosing between elements: where, clamps, masks, replaced values.

Sources: aten/src/ATen/native/cpu/TensorCompareKernel.cpp, UnaryOpsKernel.cpp,
torch/_refs/__init__.py.
"""

from __future__ import annotations

import math

from compiler.lowering.builder import Builder
from compiler.lowering.elements import (
    Element,
    Operand,
    elementwise,
    eq,
    formula_map,
    isnan,
    larger,
    number,
    smaller,
    where,
)
from compiler.lowering.promotion import Number
from compiler.lowering.registry import lowers
from compiler.lowering.tensors import Tensor

LARGEST_FLOATS = {
    "float64": 1.7976931348623157e308,
    "float32": 3.4028234663852886e38,
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
}
"""The greatest finite value of each float dtype."""


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


@elementwise("clamp_min")
def clamp_min(x: Element, low: Operand) -> Element:
    return larger(low, x)


@elementwise("clamp_max")
def clamp_max(x: Element, high: Operand) -> Element:
    return smaller(high, x)


@lowers("nan_to_num")
def nan_to_num(
    builder: Builder,
    x: Tensor,
    nan: Number | None = None,
    posinf: Number | None = None,
    neginf: Number | None = None,
) -> Tensor:
    """Replace NaN and infinities by finite numbers: by default 0 and the dtype's extremes."""
    largest = LARGEST_FLOATS.get(x.dtype, 0.0)

    def formula(element: Element) -> Element:
        if not element.is_float:
            return element
        kept = where(eq(element, math.inf), largest if posinf is None else posinf, element)
        kept = where(eq(element, -math.inf), -largest if neginf is None else neginf, kept)
        return where(isnan(element), 0.0 if nan is None else nan, kept)

    return formula_map(builder, formula, (x,))


@elementwise("fill")
def fill(x: Element, value: Operand) -> Element:
    return value if isinstance(value, Element) else number(value, x.dtype)
