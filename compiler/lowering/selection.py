"""Choosing between elements: where, clamps, masks, replaced values.

Sources: aten/src/ATen/native/cpu/TensorCompareKernel.cpp, UnaryOpsKernel.cpp,
torch/_refs/__init__.py.
"""

from __future__ import annotations

from tcw.compiler.lowering.elements import Element, Operand, elementwise, larger, smaller, where


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
