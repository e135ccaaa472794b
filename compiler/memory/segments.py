"""Segments: runs of nests as C functions, with their inputs, outputs and arena; the first write and
last use of each value, by nest and by segment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tcw.compiler.loops.graph import Call
from tcw.compiler.loops.nest import Memory, Nest, symbols_in
from tcw.compiler.loops.sizes import Size, symbols_of
from tcw.compiler.memory.accesses import Values
from tcw.compiler.memory.plan import InArena, New, Placement, Segment, TakesOver
from tcw.compiler.memory.step_order import NestOrCall


def segment(
    name: str,
    places: range,
    values: Values,
    timeline: Timeline,
    placements: Mapping[str, Placement],
    arena_bytes: Size,
) -> Segment:
    """The segment of the nests at these places of the timeline."""
    nests = [run for run in timeline.runs[places.start : places.stop] if isinstance(run, Nest)]
    accessed: dict[str, None] = {}
    gives: list[str] = []
    for place, nest in zip(places, nests, strict=True):
        access = values.access(nest)
        accessed.update(dict.fromkeys((*access.reads, *access.writes)))
        for value in access.writes:
            first = timeline.values[value].first == place and value in placements
            if first and not stays_inside(value, timeline, placements):
                gives.append(value)
    made = {value for value in gives if isinstance(placements[value], New)}
    takes: dict[str, None] = {}
    symbols: set[str] = set(symbols_of(arena_bytes))
    for value in accessed:
        root = home(value, placements)
        placement = placements.get(root)
        if isinstance(placement, InArena):
            symbols |= symbols_of(placement.offset)
        elif root not in made:
            takes[root] = None
        symbols |= {name for size in _form_sizes(value, values) for name in symbols_of(size)}
    symbols.update(*map(symbols_in, nests))
    order = [*values.program.graph.parameters, *values.program.graph.symbols]
    return Segment(
        name,
        tuple(nests),
        tuple(takes),
        tuple(gives),
        tuple(name for name in order if name in symbols),
        arena_bytes,
    )


def stays_inside(value: str, timeline: Timeline, placements: Mapping[str, Placement]) -> bool:
    """Whether a value that a nest writes has no name outside its segment."""
    if isinstance(placements.get(value), TakesOver) and not timeline.leaves(value):
        return True
    return isinstance(placements.get(home(value, placements)), InArena)


def home(value: str, placements: Mapping[str, Placement]) -> str:
    """The owner of the value's memory: the first of a chain of reuses."""
    while isinstance(placement := placements.get(value), TakesOver):
        value = placement.value
    return value


def _form_sizes(value: str, values: Values) -> Iterator[Size]:
    """The sizes and strides of the tensors created on a value's memory."""
    form = values.form(value)
    yield from form.shape
    yield from (form.size,) if isinstance(form, Memory) else form.strides
    for output in values.outputs.get(value, ()):
        yield from (*output.shape, *output.strides, output.offset)


@dataclass(slots=True)
class Lifetime:
    """Places in the order of nests and calls. An output's `last` is the end of the program."""

    first: int
    last: int
    called: bool
    """A call reads or produces the value."""


class Timeline:
    """A program's order, divided into segments and calls, with the lifetimes of its values."""

    def __init__(self, runs: Sequence[NestOrCall], values: Values) -> None:
        self.runs = tuple(runs)
        self.step: list[int] = []
        """Place of a nest or call -> index of its segment or call among the plan's steps."""
        previous: NestOrCall | None = None
        for run in runs:
            together = isinstance(run, Nest) and isinstance(previous, Nest)
            self.step.append(self.step[-1] + (not together) if self.step else 0)
            previous = run
        self.steps = self.step[-1] + 1 if self.step else 0
        self.values: dict[str, Lifetime] = {}
        end = len(self.runs)
        for place, run in enumerate(self.runs):
            accessed = values.access(run)
            for name in (*accessed.reads, *accessed.writes):
                life = self.values.setdefault(name, Lifetime(place, place, False))
                life.last = place
                life.called |= isinstance(run, Call)
        for name in values.outputs:
            self.values.setdefault(name, Lifetime(0, end, False)).last = end

    def last_step(self, value: str) -> int:
        """The last step that reads or writes the value; the number of steps for an output."""
        last = self.values[value].last
        return self.step[last] if last < len(self.runs) else self.steps

    def leaves(self, value: str) -> bool:
        """Whether the value is needed outside the segment that first writes it."""
        life = self.values[value]
        return life.called or self.last_step(value) != self.step[life.first]
