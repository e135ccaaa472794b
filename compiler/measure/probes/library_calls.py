"""The time of a compiled graph's library calls by themselves.

The marks of a compiled graph surround a call as Python makes it. torch's profiler, which times the
eager side, starts inside the call, when arguments are parsed and the operation is looked up. That
amounts to some microseconds per call, none of which is a difference between the two sides. So the
profiler also records the compiled call, and gives the time of the operations inside its graphs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tcw.compiler.measure.probes.between import EagerRun, host_run, operations
from tcw.compiler.measure.probes.code_probe import CodeProbe
from tcw.compiler.measure.probes.profiler_trace import HostEvent, ProfilerTrace
from tcw.compiler.measure.work.operations import called


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """One operation that ran inside a graph."""

    key: int
    """Key of the innermost numbered range around it: a step, or the graph as a whole."""
    graph_run: int
    """The index of the graph run within the call."""
    run: EagerRun

    def without(self, event_ns: float) -> LibraryCall:
        """See `EagerRun.without`."""
        return replace(self, run=self.run.without(event_ns))


def inside(trace: ProfilerTrace) -> list[LibraryCall]:
    """The operations inside numbered ranges, in order; see `between.outside`."""
    found: list[LibraryCall] = []
    for number, graph in enumerate(_ranges(trace.top)):
        for key, event in _within(graph):
            found += [
                LibraryCall(key, number, host_run(operation, "model", ""))
                for operation in operations(event)
            ]
    return found


def _ranges(events: Sequence[HostEvent]) -> Iterator[HostEvent]:
    """The outermost numbered ranges."""
    for event in events:
        if event.key is not None:
            yield event
        else:
            yield from _ranges(event.children)


def _within(event: HostEvent) -> Iterator[tuple[int, HostEvent]]:
    """What runs in a numbered range, with the key of the innermost range around it."""
    assert event.key is not None
    for child in event.children:
        if child.key is not None:
            yield from _within(child)
        else:
            yield event.key, child


def times(
    probes: Sequence[CodeProbe], bases: Sequence[int], calls: Sequence[Sequence[LibraryCall]]
) -> dict[int, list[float]]:
    """Key of a library call's step -> its seconds in each call; left out if any call lacks it. In a
    graph whose steps have no ranges, it is the n-th operation of its name."""
    named: dict[tuple[int, str, int], int] = {}
    """(key of the graph, name, occurrence) -> key of the step."""
    steps: set[int] = set()
    for probe, base in zip(probes, bases, strict=True):
        seen: Counter[str] = Counter()
        for step in probe.steps:
            if step.kind == "aten":
                name = ".".join(called(step.name).split(".")[:2])  # the profiler's name
                named[base, name, seen[name]] = base + 1 + step.index
                steps.add(base + 1 + step.index)
                seen[name] += 1
    found: dict[int, list[float]] = defaultdict(list)
    for call in calls:
        taken: Counter[tuple[int, int, str]] = Counter()
        sums: dict[int, float] = defaultdict(float)
        for library_call in call:
            key: int | None = library_call.key
            if library_call.key not in steps:
                like = (library_call.graph_run, library_call.key, library_call.run.name)
                key = named.get((library_call.key, library_call.run.name, taken[like]))
                taken[like] += 1
            if key is not None:
                sums[key] += library_call.run.ns / 1e9
        for key, seconds in sums.items():
            found[key].append(seconds)
    return {key: seconds for key, seconds in found.items() if len(seconds) == len(calls)}


def less_calling(stamped: Sequence[float], own: Sequence[float]) -> list[float]:
    """Seconds of a step in each round without its call overhead: the median of its stamped time
    minus the median of its own time."""
    calling = max(0.0, median(stamped) - median(own))
    return [max(0.0, one - calling) for one in stamped]
