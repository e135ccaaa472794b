"""Memory: the plan of each graph, and what is kept for the backward."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.trace.records import Buffer, MemoryPlan, Partition
from viewers.recording import Recording


@dataclass(frozen=True)
class GraphMemory:
    """The plan of one graph."""

    graph: str
    peak_bytes: int | None
    without_reuse_bytes: int | None
    reused: int
    """Buffers that take over the memory of another."""
    largest: tuple[Buffer, ...]
    """The largest buffers that it allocates, at most five; unknown sizes last."""


@dataclass(frozen=True)
class MemorySummary:
    graphs: tuple[GraphMemory, ...]
    partitions: tuple[Partition, ...]
    """One per joint graph: what is saved, what is recomputed, why."""


def memory_summary(recording: Recording) -> MemorySummary:
    graphs = tuple(
        GraphMemory(
            graph=plan.graph,
            peak_bytes=plan.peak_bytes,
            without_reuse_bytes=plan.without_reuse_bytes,
            reused=sum(bool(buffer.reuses) for buffer in plan.buffers),
            largest=_largest(plan),
        )
        for plan in recording.all(MemoryPlan)
    )
    return MemorySummary(graphs=graphs, partitions=tuple(recording.all(Partition)))


def _largest(plan: MemoryPlan) -> tuple[Buffer, ...]:
    own = [buffer for buffer in plan.buffers if buffer.kind != "input"]
    return tuple(sorted(own, key=lambda one: -(one.bytes or 0))[:5])
