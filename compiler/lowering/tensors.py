"""A tensor during lowering: a view of a value, never memory of its own."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.loops.layouts import Shape, View
from tcw.compiler.loops.sizes import Size, product


@dataclass(frozen=True, slots=True)
class Tensor:
    """`shape` is in logical order; the element with row-major index i is value[view(i)]."""

    value: str
    view: View
    shape: Shape
    dtype: str

    @property
    def size(self) -> Size:
        return product(self.shape)


@dataclass(frozen=True, slots=True)
class Meta:
    """An output's layout according to ATen (from the fake tensor)."""

    shape: Shape
    strides: tuple[Size, ...]
    dtype: str
