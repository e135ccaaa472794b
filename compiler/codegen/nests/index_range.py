"""The range of an index that is computed from the position in the iteration domain."""

from __future__ import annotations

from tcw.compiler.loops.expressions import Const, Expression, IndexTerm, Op, Position
from tcw.compiler.loops.nest import Axis


def in_range(term: IndexTerm, axes: tuple[Axis, ...]) -> bool:
    """Whether an index is certainly in range."""
    index, limits = unclamped(term.index)
    size = term.size
    if limits is not None:
        return limits[0] >= 0 and isinstance(size, int) and limits[1] < size
    position, repeat = quotient(index)
    found = None if position is None else range_of(position, axes)
    if found is None or not isinstance(size, int):
        return False
    return found[0] >= 0 and found[1] // repeat < size


def range_of(position: Position, axes: tuple[Axis, ...]) -> tuple[int, int] | None:
    """The least and the greatest value of a position; None if they are unknown."""
    low = high = position.address.offset
    if position.address.then or not isinstance(low, int) or not isinstance(high, int):
        return None
    for axis, stride in zip(axes, position.address.strides, strict=True):
        if stride == 0:
            continue
        if not isinstance(axis.size, int) or not isinstance(stride, int):
            return None
        reach = (axis.size - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def unclamped(index: Expression) -> tuple[Expression, tuple[int, int] | None]:
    """The index inside a clamp, and the clamp's limits."""
    if isinstance(index, Op) and index.name == "minimum":
        inner, greatest = index.args
        if isinstance(inner, Op) and inner.name == "maximum" and isinstance(greatest, Const):
            index_inside, least = inner.args
            if isinstance(least, Const):
                return index_inside, (int(least.number), int(greatest.number))
    return index, None


def quotient(index: Expression) -> tuple[Position | None, int]:
    """The position that an index divides, and by what; None if it is not such a quotient."""
    if isinstance(index, Position):
        return index, 1
    if isinstance(index, Op) and index.name == "floor_divide":
        inner, divisor = index.args
        if isinstance(inner, Position) and isinstance(divisor, Const) and divisor.number > 0:
            return inner, int(divisor.number)
    return None, 1
