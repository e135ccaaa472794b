"""Lifetimes: the first write and last use of each value, by nest and by segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcw.compiler.loops.graph import Call
from tcw.compiler.loops.nest import Nest
from tcw.compiler.memory.accesses import Values
from tcw.compiler.memory.order import NestOrCall


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
