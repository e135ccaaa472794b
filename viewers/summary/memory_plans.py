"""Memory: the plan of each graph, its buffers as places that are reused, and what is kept for the
backward."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from tcw.compiler.protocol.decision import split_id
from tcw.compiler.trace.matching import base_graph, is_predicted
from tcw.compiler.trace.records import Buffer, Decided, MemoryPlan, Partition, SavedValue
from tcw.viewers.recording import Recording
from tcw.viewers.words import bytes_text, plural


@dataclass(frozen=True)
class ReuseSavings:
    """What memory reuse saves in one graph.

    A buffer that reuses the memory of a dead one saves an allocation, not memory at the peak: the
    other would have been freed. Only a buffer written in place of one that is still read lowers
    what is live at a step.
    """

    buffers: int
    """Buffers that reuse the memory of another."""
    in_place: int
    """Of those, how many are written while the other is still being read."""
    bytes: int | None
    """Bytes not allocated again; None if a size is symbolic."""
    peak_saved: int | None
    """Bytes by which reuse lowers the peak."""


def peaks(recording: Recording) -> dict[str, int | None]:
    """Graph -> its peak in bytes; None if that is unknown, as of a graph that was not planned
    because it runs on ATen. Without predicted graphs."""
    kernels = recording.kernels.values()
    generated = {kernel.graph for kernel in kernels if kernel.generated}
    on_aten = dict.fromkeys(kernel.graph for kernel in kernels if kernel.graph not in generated)
    planned = {plan.graph: plan.peak_bytes for plan in recording.all(MemoryPlan)}
    return {
        base_graph(graph): peak
        for graph, peak in {**on_aten, **planned}.items()
        if not is_predicted(graph)
    }


def highest_peak(recording: Recording) -> int | None:
    """The highest peak of the graphs, in bytes; None if one is unknown, or there are none."""
    of_each = peaks(recording).values()
    return None if None in of_each else max((one or 0 for one in of_each), default=None)


def reuse_of(plan: MemoryPlan) -> ReuseSavings:
    taking = [buffer for buffer in plan.buffers if buffer.reuses]
    sizes = [buffer.bytes for buffer in taking]
    peak, without = plan.peak_bytes, plan.without_reuse_bytes
    return ReuseSavings(
        buffers=len(taking),
        in_place=sum(buffer.inplace for buffer in taking),
        bytes=None if None in sizes else sum(size or 0 for size in sizes),
        peak_saved=without - peak if peak is not None and without is not None else None,
    )


def peak_words(plan: MemoryPlan, reuse: ReuseSavings) -> str:
    """`peak 6.1 MB (9.1 MB without reuse)`."""
    if plan.peak_bytes is None:
        return "peak unknown: symbolic sizes"
    words, without = f"peak {bytes_text(plan.peak_bytes)}", plan.without_reuse_bytes
    if without is None or not reuse.buffers:
        return words
    return f"{words} ({bytes_text(without) if reuse.peak_saved else 'the same'} without reuse)"


def reuse_words(reuse: ReuseSavings) -> str:
    """`3 buffers reuse memory (1 in place), saves 512 KB`."""
    verb = "reuses" if reuse.buffers == 1 else "reuse"
    words = f"{plural(reuse.buffers, 'buffer')} {verb} memory"
    if reuse.in_place:
        words += f" ({reuse.in_place} in place)"
    if reuse.buffers and reuse.bytes is not None:
        words += f", saves {bytes_text(reuse.bytes)}"
    return words


def by_choice(partition: Partition) -> list[SavedValue]:
    """What costs memory first, then what costs time, then what exists anyway; the largest first
    of each."""
    order = ("saved", "recomputed", "input")
    return sorted(
        partition.values, key=lambda value: (order.index(value.choice), -(value.bytes or 0))
    )


def partition_words(partition: Partition) -> str:
    """`3 values saved, 1.0 MB; 2 operations recomputed`."""
    saved = sum(value.choice == "saved" for value in partition.values)
    words = f"{plural(saved, 'value')} saved, {bytes_text(partition.saved_bytes)}"
    return f"{words}; {plural(partition.recomputed, 'operation')} recomputed"


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
    return {split_id(decided.id)[2][0]: decided for decided in taken}
