"""Reads at an index that puts the elements of neighbouring lanes near each other.

index := position | position / 2 | position / 4        rounded down
term  := index | minimum(maximum(index, least), greatest)
"""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.codegen.cpp.vocabulary import within
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.index_range import quotient, unclamped
from tcw.compiler.loops.expressions import IndexTerm, Position, ReadIndexed

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
    index, limits = unclamped(term.index)
    position, repeat = quotient(index)
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


def window(facts: Facts, read: ReadIndexed, lane: int) -> Window | None:
    """What a read sees along an axis if only one of its indices varies there, and neighbours are
    near each other. None for any other read."""
    if read.address.then or lane in facts.moves(read.address) or facts.backwards:
        return None
    terms = [term for term in read.terms if lane in facts.axes(term.index)]
    found = window_of(terms[0], lane) if len(terms) == 1 else None
    if found is None or (read.otherwise is None and facts.in_range(found.term)):
        return found
    plain = found.repeat == 1 and found.limits is None
    return found if plain and read.otherwise is not None else None
