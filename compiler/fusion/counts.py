"""Shape arithmetic that fusion repeats often, cached."""

from __future__ import annotations

from functools import lru_cache

from tcw.compiler.loops.layouts import Shape, refine
from tcw.compiler.loops.sizes import Size, product


@lru_cache(maxsize=1 << 12)
def elements(shape: Shape) -> Size:
    """The number of elements of a shape."""
    return product(shape)


@lru_cache(maxsize=1 << 12)
def common(*shapes: Shape) -> Shape | None:
    """The coarsest digits that refine all these shapes, or None if there are none."""
    return refine(*shapes)
