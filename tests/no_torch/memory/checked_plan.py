"""A checker for plans: executes a plan byte by byte and detects lost or overwritten values.

It trusts nothing that the planner computed. It has its own model of memory, in which each byte
belongs to the value last written there, and follows the program's own order to determine the
content that every step must see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcw.compiler.loops.graph import Call, Input
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.memory.accesses import Values, access
from tcw.compiler.memory.plan import InArena, New, Plan, Segment, TakesOver
from tcw.compiler.memory.reuse import refusal
from tcw.compiler.memory.step_order import moves

Span = tuple[str, int, int]
"""(region, first byte, end)."""


class WrongPlan(AssertionError):
    """The plan loses a value, or reads missing content. The message names value and step."""


def check_plan(program: Program, plan: Plan, donated: tuple[str, ...] = ()) -> None:
    """Raises WrongPlan. Sizes are those that the graph is compiled for (`Graph.hints`)."""
    _Machine(program, plan, donated).run()


def versions(
    steps: tuple[Nest | Call, ...] | list[Nest | Call], values: Values
) -> Mapping[str, tuple[tuple[str, int], ...]]:
    """Name of a step -> the number of earlier writes to each memory that it reads or writes."""
    count: dict[str, int] = {}
    found = {}
    for step in steps:
        accessed = access(step)
        found[step.name] = tuple(
            (name, count.get(values.memory(name), 0))
            for name in (*accessed.reads, *accessed.writes)
        )
        for name in accessed.writes:
            count[values.memory(name)] = count.get(values.memory(name), 0) + 1
    return found


@dataclass
class _Machine:
    program: Program
    plan: Plan
    donated: tuple[str, ...]
    place: dict[str, Span] = field(default_factory=dict)
    """The location of each existing value."""
    owners: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)
    """Region -> pieces (first byte, end, the value last written there)."""
    bound: set[str] = field(default_factory=set)
    """Names that the wrapper holds."""

    def run(self) -> None:
        self.values = values = Values(self.program)
        runs: list[Nest | Call] = []
        for step in self.plan.steps:
            runs += [step.run] if isinstance(step.run, Call) else step.run.nests
        self.original = {s.name: s for s in self.program.steps}
        self._require(sorted(r.name for r in runs) == sorted(self.original), "steps are lost")
        planned = [self.original[run.name] for run in runs]
        before, after = versions(self.program.steps, values), versions(planned, values)
        for name, seen in after.items():
            self._require(seen == before[name], f"{name} sees {seen}, should see {before[name]}")
        orders = [
            [r.name for r in one if isinstance(r, Call) and not moves(r, values)]
            for one in (self.program.steps, runs)
        ]
        self._require(orders[0] == orders[1], "calls change places")
        for node in self.program.graph.nodes:
            if isinstance(node, Input):
                self._create(node.name, self._bytes(node.name))
                self.bound.add(node.name)
        for step in self.plan.steps:
            if isinstance(step.run, Segment):
                self._segment(step.run)
            else:
                self._call(step.run)
            for name in step.dies:
                self._require(name in self.bound, f"{name} dies, but does not exist")
                self._require(name not in values.outputs, f"the output {name} dies")
                self.bound.discard(name)
        for name in values.outputs:
            self._require(name in self.bound, f"the output {name} does not exist at the end")
            self._read(name, "the end")

    def _segment(self, segment: Segment) -> None:
        arena = f"arena of {segment.name}"
        size = self._number(segment.arena_bytes)
        self.owners[arena] = [(0, size, "")]
        self.arena_bytes = size
        for name in segment.takes:
            self._require(name in self.bound, f"{segment.name} takes {name}, which does not exist")
        for name in segment.gives:
            if isinstance(self.plan.placements[name], New):
                self._create(name, self._bytes(name), owner="")
        for nest in segment.nests:
            original = self.original[nest.name]
            assert isinstance(original, Nest)
            self._nest(segment, original, arena)
        self.bound.update(segment.gives)
        for name, (region, _, _) in list(self.place.items()):
            if region == arena:
                del self.place[name]
        del self.owners[arena]

    def _nest(self, segment: Segment, nest: Nest, arena: str) -> None:
        accessed = access(nest)
        for name in accessed.writes:
            if name not in self.place:
                self.place[name] = self._placed(name, arena)
        for name in (*accessed.reads, *accessed.writes):
            home = self._home(name)
            there = home in segment.takes or home in segment.gives
            there = there or isinstance(self.plan.placements.get(home), InArena)
            self._require(there, f"{nest.name} has no memory for {name}")
        for name in accessed.reads:
            if name not in accessed.writes:
                self._read(name, nest.name)
        for name in accessed.writes:
            self._write(name, nest)

    def _placed(self, name: str, arena: str) -> Span:
        placement = self.plan.placements[name]
        size = self._bytes(name)
        if isinstance(placement, InArena):
            offset = self._number(placement.offset)
            self._require(offset % 64 == 0, f"{name} is not aligned")
            self._require(offset + size <= self.arena_bytes, f"{name} is beyond the arena")
            return arena, offset, offset + size
        self._require(isinstance(placement, TakesOver), f"{name} is new, but no segment returns it")
        assert isinstance(placement, TakesOver)
        donor = placement.value
        self._require(donor in self.place, f"{name} reuses {donor}, which does not exist")
        self._require(
            self.values.bytes(donor) == self.values.bytes(name),
            f"{name} is not as large as {donor}",
        )
        input_kept = donor in self.values.inputs and donor not in self.donated
        self._require(not input_kept, f"{name} reuses the caller's {donor}")
        self._require(donor not in self.values.outputs, f"{name} reuses the output {donor}")
        self._require(not self.values.aliased(donor), f"{name} reuses {donor}, an alias")
        return self.place[donor]

    def _write(self, name: str, nest: Nest) -> None:
        """Claim the bytes. The nest may overwrite what it reads itself only in place."""
        region, start, end = self.place[name]
        for first, last, owner in self.owners[region]:
            if first >= end or last <= start or owner in ("", name):
                continue
            if owner in access(nest).reads:
                placement = self.plan.placements.get(name)
                placed = isinstance(placement, TakesOver) and placement.in_place
                self._require(placed, f"{nest.name} overwrites {owner}, which it reads")
                no = refusal(nest, name, owner, self.values)
                self._require(no is None, f"{nest.name} overwrites {owner}: {no}")
        self._own(name)

    def _own(self, name: str) -> None:
        region, start, end = self.place[name]
        pieces: list[tuple[int, int, str]] = []
        for first, last, owner in self.owners[region]:
            if first < min(last, start):
                pieces.append((first, min(last, start), owner))
            if max(first, end) < last:
                pieces.append((max(first, end), last, owner))
        if start < end:
            pieces.append((start, end, name))
        self.owners[region] = sorted(pieces)

    def _call(self, call: Call) -> None:
        accessed = access(call)
        for name in accessed.reads:
            self._require(name in self.bound, f"{call.name} reads {name}, which does not exist")
            self._read(name, call.name)
        for name in call.mutates:
            self._require(name in self.bound, f"{call.name} writes {name}, which does not exist")
        for result in call.results:
            if result is not None:
                self._create(result.name, self._bytes(result.name))
                self.bound.add(result.name)

    def _create(self, name: str, size: int, owner: str | None = None) -> None:
        self.place[name] = name, 0, size
        self.owners[name] = [(0, size, name if owner is None else owner)]

    def _read(self, name: str, where: str) -> None:
        self._require(name in self.place, f"{where} reads {name}, which does not exist")
        region, start, end = self.place[name]
        for first, last, owner in self.owners[region]:
            if first < end and start < last:
                self._require(
                    owner == name, f"{where} reads {name}, but {owner or 'nothing'} is there"
                )

    def _home(self, name: str) -> str:
        while isinstance(placement := self.plan.placements.get(name), TakesOver):
            name = placement.value
        return name

    def _bytes(self, name: str) -> int:
        found = self.values.number(self.values.bytes(name))
        self._require(found is not None, f"{name} has no size without hints")
        assert found is not None
        return found

    def _number(self, size: object) -> int:
        found = self.values.number(size)  # type: ignore[arg-type]
        assert found is not None
        return found

    def _require(self, condition: bool, what: str) -> None:
        if not condition:
            raise WrongPlan(f"{self.program.graph.name}: {what}")
