"""Dimensions, bounds and strides as ATen's arguments state them."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.loops.layouts import Shape
from compiler.loops.sizes import Size, add, at_least
from compiler.lowering.registry import NoLowering


def dimension(dim: int, rank: int) -> int:
    """A dimension counted from the front; a tensor without any has one for this purpose."""
    return dim % max(rank, 1)


def dimensions(dims: Sequence[int], rank: int) -> list[int]:
    return [dimension(dim, rank) for dim in dims]


def bound(index: Size | None, size: Size, default: Size) -> Size:
    """A start or end of a slice, between 0 and the size of the dimension.

    Raises `NoLowering` where the sign of a symbolic index is not certain.
    """
    if index is None:
        return default
    if isinstance(index, int) and isinstance(size, int):
        return max(0, min(size, index + size if index < 0 else index))
    if at_least(index, size):
        return size
    return position(index, size)


def position(index: Size, size: Size) -> Size:
    """An index of a dimension; a negative one counts from its end."""
    if at_least(index, 0):
        return index
    if at_least(-1, index):
        return add(size, index)
    raise NoLowering(f"the sign of the index {index} is not certain")


def without(shape: Shape, dim: int) -> Shape:
    return shape[:dim] + shape[dim + 1 :]


def with_size(shape: Shape, dim: int, size: Size) -> Shape:
    """The shape with another size for one dimension."""
    return (*shape[:dim], size, *shape[dim + 1 :])
