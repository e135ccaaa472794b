"""Arithmetic on shapes that fusion asks for again and again, remembered."""

from __future__ import annotations

from functools import lru_cache

from compiler.loops.layouts import Shape, refine
from compiler.loops.sizes import Size, product


@lru_cache(maxsize=1 << 12)
def elements(shape: Shape) -> Size:
    """How many elements a shape has."""
    return product(shape)


@lru_cache(maxsize=1 << 12)
def common(*shapes: Shape) -> Shape | None:
    """The coarsest digits that all these shapes can be split into, or None."""
    return refine(*shapes)
