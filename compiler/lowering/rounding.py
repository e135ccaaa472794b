"""Rounding to whole numbers; integers are unchanged.

Source: aten/src/ATen/native/cpu/UnaryOpsKernel.cpp.
"""

from __future__ import annotations

from collections.abc import Callable

from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.elements import Element, apply, elementwise, formula_map, nearest
from tcw.compiler.lowering.registry import lowers
from tcw.compiler.lowering.tensors import Tensor


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
