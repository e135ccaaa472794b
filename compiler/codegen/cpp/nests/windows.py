"""Reads at an index of which neighbouring lanes' elements are near each other.

index := position | position / 2 | position / 4        rounded down
term  := index | minimum(maximum(index, least), greatest)
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.codegen.cpp.vocabulary import within
from compiler.loops.expressions import Const, Expression, IndexTerm, Op, Position
from compiler.loops.nest import Axis

REPEATS = (1, 2, 4)
"""How many neighbouring positions may share an element; they divide the vectors' lanes."""


@dataclass(frozen=True, slots=True)
class Window:
    """The index that varies along the lanes."""

    term: IndexTerm
    position: Position
    step: int
    """How far apart the elements of neighbouring lanes are, if each has its own."""
    repeat: int
    limits: tuple[int, int] | None
    """The least and the greatest index, to which others are clamped."""
    phase: int
    """The remainder of a whole vector's first position by `repeat`."""

    def places(self, lanes: int) -> within.Places:
        """Where each lane's element is, counted from the first lane's."""
        if self.repeat == 1:
            return tuple(k * self.step for k in range(lanes))
        return tuple((k + self.phase) // self.repeat for k in range(lanes))


def window_of(term: IndexTerm, lane: int) -> Window | None:
    """The window that a term reads along an axis, if it has one of the forms above."""
    if term.stride != 1 or term.wraps or term.checked:
        return None
    index, limits = _unclamped(term.index)
    position, repeat = _quotient(index)
    if position is None or position.address.then or repeat not in REPEATS:
        return None
    step, offset = position.address.strides[lane], position.address.offset
    if not isinstance(step, int) or not within.fits(step):
        return None
    if repeat == 1:
        return Window(term, position, step, 1, limits, 0)
    others = (s for axis, s in enumerate(position.address.strides) if axis != lane)
    even = all(isinstance(s, int) and s % repeat == 0 for s in others)
    if step != 1 or not even or not isinstance(offset, int):
        return None
    return Window(term, position, step, repeat, limits, offset % repeat)


def in_range(term: IndexTerm, axes: tuple[Axis, ...]) -> bool:
    """Whether an index is certainly in range."""
    index, limits = _unclamped(term.index)
    size = term.size
    if limits is not None:
        return limits[0] >= 0 and isinstance(size, int) and limits[1] < size
    position, repeat = _quotient(index)
    if position is None or position.address.then or not isinstance(size, int):
        return False
    low = high = position.address.offset
    if not isinstance(low, int) or not isinstance(high, int):
        return False
    for axis, stride in zip(axes, position.address.strides, strict=True):
        if stride == 0:
            continue
        if not isinstance(axis.size, int) or not isinstance(stride, int):
            return False
        reach = (axis.size - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low >= 0 and high // repeat < size


def _unclamped(index: Expression) -> tuple[Expression, tuple[int, int] | None]:
    """The index inside a clamp, and the clamp's limits."""
    if isinstance(index, Op) and index.name == "minimum":
        inner, greatest = index.args
        if isinstance(inner, Op) and inner.name == "maximum" and isinstance(greatest, Const):
            index_inside, least = inner.args
            if isinstance(least, Const):
                return index_inside, (int(least.number), int(greatest.number))
    return index, None


def _quotient(index: Expression) -> tuple[Position | None, int]:
    if isinstance(index, Position):
        return index, 1
    if isinstance(index, Op) and index.name == "floor_divide":
        inner, divisor = index.args
        if isinstance(inner, Position) and isinstance(divisor, Const) and divisor.number > 0:
            return inner, int(divisor.number)
    return None, 1
