"""The buffers of a memory plan as places in memory: who reuses whose, and what is live."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from tcw.compiler.control.decisions import split_id
from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Buffer, Decided, MemoryPlan
from tcw.viewers.recording import Recording


@dataclass(frozen=True)
class MemoryPlace:
    """A piece of memory: a buffer and those that reused it, in order."""

    buffers: tuple[Buffer, ...]

    @property
    def first(self) -> int:
        return self.buffers[0].first

    @property
    def last(self) -> int:
        return max(buffer.last for buffer in self.buffers)

    @property
    def bytes(self) -> int | None:
        """The largest of them; None if a size is symbolic."""
        sizes = [buffer.bytes for buffer in self.buffers]
        return None if None in sizes else max(size or 0 for size in sizes)


def places(plan: MemoryPlan) -> list[MemoryPlace]:
    """The memory that the graph allocates, by birth. A buffer that reuses an input's memory gets a
    place of its own here: the input belongs to the caller."""
    own = {buffer.name: buffer for buffer in plan.buffers if buffer.kind != "input"}
    takers: dict[str, str] = {}
    for buffer in own.values():
        if buffer.reuses in own and buffer.reuses != buffer.name:
            takers.setdefault(buffer.reuses, buffer.name)
    taken = set(takers.values())
    found = []
    for buffer in own.values():
        if buffer.name in taken:
            continue
        chain = [buffer]
        seen = {buffer.name}
        while (after := takers.get(chain[-1].name, "")) and after not in seen:
            seen.add(after)
            chain.append(own[after])
        found.append(MemoryPlace(tuple(chain)))
    drawn = {buffer.name for place in found for buffer in place.buffers}
    return found + [MemoryPlace((buffer,)) for buffer in own.values() if buffer.name not in drawn]


def alive(plan: MemoryPlan) -> list[int]:
    """Bytes live at each step; a buffer whose memory is reused counts until then."""
    steps = max(1, len(plan.steps))
    born, once = [0] * (steps + 1), [0] * steps
    known = {buffer.name: buffer for buffer in plan.buffers}
    for buffer in plan.buffers:
        if buffer.kind == "input":
            continue
        first, end = min(buffer.first, steps), min(buffer.last + 1, steps)
        if first < end:
            born[first] += buffer.bytes or 0
            born[end] -= buffer.bytes or 0
    for buffer in plan.buffers:
        taken = known.get(buffer.reuses)
        if taken is not None and taken.kind != "input" and taken.last >= buffer.first:
            once[min(buffer.first, steps - 1)] += taken.bytes or 0
    return [alive - gone for alive, gone in zip(accumulate(born[:-1]), once, strict=True)]


def reuse_decisions(recording: Recording, graph: str) -> dict[str, Decided]:
    """Buffer -> the last decision whether it reuses another's memory, if there was one."""
    short = base_graph(graph)
    taken = recording.decisions.taken("reuse", short, graph)
    return {split_id(one.id)[2][0]: one for one in taken}
