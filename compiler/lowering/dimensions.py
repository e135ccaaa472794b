"""Dimensions, bounds and strides, normalised from ATen's arguments."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.loops.layouts import Shape
from tcw.compiler.loops.sizes import Size, add, at_least
from tcw.compiler.lowering.registry import NoLowering


def dimension(dim: int, rank: int) -> int:
    """A dimension counted from the front. A zero-dimensional tensor counts as having one."""
    return dim % max(rank, 1)


def dimensions(dims: Sequence[int], rank: int) -> list[int]:
    return [dimension(dim, rank) for dim in dims]


def bound(index: Size | None, size: Size, default: Size) -> Size:
    """A start or end of a slice, clamped between 0 and the size of the dimension.

    Raises `NoLowering` if the sign of a symbolic index is uncertain.
    """
    if index is None:
        return default
    if isinstance(index, int) and isinstance(size, int):
        return max(0, min(size, index + size if index < 0 else index))
    if at_least(index, size):
        return size
    return position(index, size)


def position(index: Size, size: Size) -> Size:
    """An index of a dimension; negative indices count from the end."""
    if at_least(index, 0):
        return index
    if at_least(-1, index):
        return add(size, index)
    raise NoLowering(f"the sign of the index {index} is not certain")


def without(shape: Shape, dim: int) -> Shape:
    return shape[:dim] + shape[dim + 1 :]


def with_size(shape: Shape, dim: int, size: Size) -> Shape:
    """The shape with the size of one dimension replaced."""
    return (*shape[:dim], size, *shape[dim + 1 :])
