"""Reads at an index that puts the elements of neighbouring lanes near each other.

index := position | position / 2 | position / 4        rounded down
term  := index | minimum(maximum(index, least), greatest)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.nests.addresses import selected
from tcw.compiler.codegen.cpp.nests.code import Scope
from tcw.compiler.codegen.cpp.vocabulary import within
from tcw.compiler.codegen.nests.facts import Facts, quotient, unclamped
from tcw.compiler.loops.expressions import IndexTerm, Position, ReadIndexed
from tcw.compiler.loops.sizes import c_expression

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.nests.vector_values import Values

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


def read_window(values: Values, read: ReadIndexed, scope: Scope) -> str | None:
    """The text of a read with a fill value for indices out of range, or whose lanes read elements
    near each other. None for any other read."""
    facts, lane = values.facts, values.lane
    found = None
    varies = False
    if scope.is_lane and lane is not None:
        varies = any(lane in facts.axes(term.index) for term in read.terms)
        found = window(facts, read, lane)
    if found is not None and scope.lanes.count % found.repeat:
        found = None
    if read.otherwise is None:
        return None if found is None else _near_lanes(values, read, found, scope)
    if read.address.then or (varies and found is None):
        return values.of(selected(read, read.otherwise), scope)
    if found is not None:
        return _near_lanes(values, read, found, scope)
    more, _ = values.indices(read.terms, scope)
    inside = _all_inside(values, read.terms, scope)
    base = values.bases[read.buffer]
    text = values.load(base, read.address, scope, more)
    other = scope.lanes.constant(read.otherwise, base.dtype)
    return f"({inside} ? {text} : {other})" if inside else text


def _near_lanes(values: Values, read: ReadIndexed, found: Window, scope: Scope) -> str:
    base = values.bases[read.buffer]
    fixed = tuple(term for term in read.terms if term is not found.term)
    more, _ = values.indices(fixed, scope)
    inside = "" if read.otherwise is None else _all_inside(values, fixed, scope)
    first, word = _first_and_word(values, found, scope)
    row = f"{values.pointer(base, read.address, scope)}{more}"
    places = found.places(scope.lanes.count)
    if found.limits is not None:
        least, greatest = found.limits
        size = str(greatest - least + 1)
        start = f"{row} + {least}" if least else row
        return scope.lanes.load_clamped(base.dtype, start, places, first, word, size)
    pointer = f"{row} + {first}"
    if not inside and found.repeat == 1 and values.facts.in_range(found.term):
        return values.near(base.dtype, pointer, found.step, scope)
    if inside:
        word += f" & -(unsigned long)({inside})"
    return scope.lanes.load_within(base.dtype, pointer, places, word, read.otherwise or 0)


def _all_inside(values: Values, terms: tuple[IndexTerm, ...], scope: Scope) -> str:
    """Whether indices that all lanes share are in range; empty if they certainly are."""
    found = []
    for term in terms:
        if values.facts.in_range(term):
            continue
        home = values.home(term.index, scope)
        key = ("inside", term)
        if key not in home.memo:
            at, name = home.memo["index", term], values.name(key, "within")
            size = c_expression(term.size)
            home.code.add(f"const bool {name} = (unsigned long){at} < (unsigned long){size};")
            home.memo[key] = name
        found.append(home.memo[key])
    return " && ".join(found)


def _first_and_word(values: Values, found: Window, scope: Scope) -> tuple[str, str]:
    """The first lane's index, counted from the least, and the word of the elements from there that
    are inside."""
    key = ("window", found.term)
    if key not in scope.memo:
        first, word = values.name(key, "first"), values.name((key, "inside"), "seen")
        start = values.start(found.position.address, scope)
        count = f"({scope.count} - 1) * {found.step}"
        if found.repeat > 1:
            shift = found.repeat.bit_length() - 1
            start, count = f"({start}) >> {shift}", f"(({count} + {found.phase}) >> {shift})"
        size = c_expression(found.term.size)
        if found.limits is not None:
            least, greatest = found.limits
            start, size = f"({start}) - {least}", str(greatest - least + 1)
        scope.code.add(f"const long {first} = {start};")
        end = f"{first} + {count} + 1"
        if found.limits is None and values.facts.in_range(found.term):
            size = f"{first} + 64" if scope.count is None else end
        elif scope.count is not None:
            size = f"({end} < {size} ? {end} : {size})"
        scope.code.add(f"const unsigned long {word} = {scope.lanes.inside(first, size)};")
        scope.memo[key] = first
        scope.memo[key, "inside"] = word
    return scope.memo[key], scope.memo[key, "inside"]
