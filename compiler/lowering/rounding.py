"""Rounding to whole numbers; integers are unchanged.

Source: aten/src/ATen/native/cpu/UnaryOpsKernel.cpp.
"""

from __future__ import annotations

from compiler.lowering.builder import Builder
from compiler.lowering.elements import Element, apply, elementwise, formula_map, nearest
from compiler.lowering.registry import lowers
from compiler.lowering.tensors import Tensor


@elementwise("floor")
def floor(x: Element) -> Element:
    return apply("floor", x) if x.is_float else x


@elementwise("ceil")
def ceil(x: Element) -> Element:
    return apply("ceil", x) if x.is_float else x


@elementwise("trunc", "fix")
def trunc(x: Element) -> Element:
    return apply("trunc", x) if x.is_float else x


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
