"""What torch's profiler saw of a call, read from the trace that it exports.

The events are those of `torch.profiler.profile.export_chrome_trace`. On the host, these are
operations (`cpu_op`), named ranges (`user_annotation`, or `cpu_op` for `_RecordFunctionFast`), and
calls that launch work (`cuda_runtime`, `cuda_driver`). The work of a device (`kernel`,
`gpu_memcpy`, `gpu_memset`) has the `correlation` of the call that launched it. Needs neither torch
nor a device.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

RANGE = "tcw#"
"""Prefix of our own ranges: `tcw#17` for the key 17, `tcw#loss`."""
_KEY = re.compile(rf"{RANGE}(\d+)$")
_CLOCK = f"{RANGE}clock"
BEGIN, END = f"{RANGE}begin", f"{RANGE}end"
"""Ranges before and after each recorded call."""
_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_LAUNCHES = ("cuda_runtime", "cuda_driver")
_HOST = ("cpu_op", "user_annotation")


@dataclass(eq=False, slots=True)
class HostEvent:
    """An operation or a named range of one thread, in nanoseconds of `time.perf_counter_ns`."""

    name: str
    start: int
    end: int
    thread: Any
    sequence: int | None = None
    """Autograd's sequence number of the node that it created, or that runs."""
    parent: HostEvent | None = None
    children: list[HostEvent] = field(default_factory=list)

    @property
    def ns(self) -> int:
        return self.end - self.start

    @property
    def key(self) -> int | None:
        match = _KEY.match(self.name)
        return int(match[1]) if match else None

    def above(self) -> Iterator[HostEvent]:
        """The events that it runs in, innermost first."""
        event = self.parent
        while event is not None:
            yield event
            event = event.parent

    def below(self) -> Iterator[HostEvent]:
        """All events that run in it."""
        for child in self.children:
            yield child
            yield from child.below()


@dataclass(eq=False, slots=True)
class DeviceWork:
    """One kernel, copy or fill on a device."""

    name: str
    start: int
    end: int
    launched: int | None = None
    """When the host launched it; None if the profiler lost the launch."""
    within: HostEvent | None = None
    """The innermost event that launched it."""

    @property
    def ns(self) -> int:
        return self.end - self.start


@dataclass
class ProfilerTrace:
    """Host events of each thread as a tree, and a device's work, ordered by start."""

    top: list[HostEvent] = field(default_factory=list)
    work: list[DeviceWork] = field(default_factory=list)

    def events(self) -> Iterator[HostEvent]:
        for event in self.top:
            yield event
            yield from event.below()

    @cached_property
    def _of_event(self) -> dict[int, list[DeviceWork]]:
        found: dict[int, list[DeviceWork]] = defaultdict(list)
        for work in self.work:
            event = work.within
            while event is not None:
                found[id(event)].append(work)
                event = event.parent
        return found

    def work_of(self, event: HostEvent) -> Sequence[DeviceWork]:
        """The work launched inside an event."""
        return self._of_event.get(id(event), ())

    def busy_ns(self, since: int | None = None, until: int | None = None) -> int:
        """Nanoseconds in which the device did any of the work launched in this span."""
        return union((work.start, work.end) for work in self.launched(since, until))

    def launched(self, since: int | None, until: int | None) -> list[DeviceWork]:
        """Work that the host launched in this span."""
        return [
            work
            for work in self.work
            if (since is None or (work.launched or work.start) >= since)
            and (until is None or (work.launched or work.start) < until)
        ]


def union(spans: Iterable[tuple[int, int]]) -> int:
    """The length that the spans cover together."""
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def parse(events: Iterable[Mapping[str, Any]], clock: int | None = None) -> ProfilerTrace:
    """Read `traceEvents`. `clock`: `perf_counter_ns` at the start of the range `tcw#clock`, by
    which all times are shifted; without it they stay the trace's own."""
    timed = [event for event in events if event.get("ph") == "X"]
    moved = 0
    for event in timed:
        if clock is not None and event.get("name") == _CLOCK and event.get("cat") in _HOST:
            moved = clock - _ns(event["ts"])
    host: dict[Any, list[HostEvent]] = defaultdict(list)
    by_external: dict[Any, HostEvent] = {}
    launches: dict[Any, tuple[int, Any]] = {}
    for event in timed:
        category, about = event.get("cat"), event.get("args", {})
        start = _ns(event["ts"]) + moved
        if category in _HOST and event["name"] != _CLOCK:
            thread = event.get("tid")
            host_event = HostEvent(
                str(event["name"]),
                start,
                start + _ns(event.get("dur", 0)),
                thread,
                about.get("Sequence number"),
            )
            host[thread].append(host_event)
            if "External id" in about:
                by_external[about["External id"]] = host_event
        elif category in _LAUNCHES and "correlation" in about:
            launches[about["correlation"]] = start, event.get("tid")
    trace = ProfilerTrace()
    for of_thread in host.values():
        trace.top += _nest(of_thread)
    trace.top.sort(key=lambda event: event.start)
    starts = {
        thread: sorted(of_thread, key=lambda event: event.start)
        for thread, of_thread in host.items()
    }
    places = {thread: [event.start for event in found] for thread, found in starts.items()}
    for event in timed:
        if event.get("cat") not in _WORK:
            continue
        about = event.get("args", {})
        start = _ns(event["ts"]) + moved
        work = DeviceWork(str(event["name"]), start, start + _ns(event.get("dur", 0)))
        launch = launches.get(about.get("correlation"))
        if launch is not None:
            work.launched, thread = launch
            if thread in starts:
                work.within = _innermost(starts[thread], places[thread], work.launched)
        if work.within is None:
            work.within = by_external.get(about.get("External id"))
            if work.launched is None and work.within is not None:
                work.launched = work.within.start
        trace.work.append(work)
    trace.work.sort(key=lambda work: work.start)
    return trace


def calls(trace: ProfilerTrace) -> list[ProfilerTrace]:
    """What the host did and launched in each marked call, in order; the whole trace if there are no
    marks."""
    marks: dict[str, list[int]] = {BEGIN: [], END: []}
    for event in trace.events():
        if event.name in marks:
            marks[event.name].append(event.start)
    ends = sorted(marks[END])
    traces: list[ProfilerTrace] = []
    for since in sorted(marks[BEGIN]):
        until = next((end for end in ends if end > since), None)
        top = [
            host_event
            for host_event in trace.top
            if since < host_event.start and (until is None or host_event.start < until)
        ]
        traces.append(ProfilerTrace(top, trace.launched(since, until)))
    return traces or [trace]


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def _nest(events: list[HostEvent]) -> list[HostEvent]:
    """Link the events of one thread; returns the outermost ones."""
    top: list[HostEvent] = []
    open_: list[HostEvent] = []
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        while open_ and open_[-1].end <= event.start:
            open_.pop()
        if open_:
            event.parent = open_[-1]
            open_[-1].children.append(event)
        else:
            top.append(event)
        open_.append(event)
    return top


def _innermost(events: Sequence[HostEvent], starts: Sequence[int], time: int) -> HostEvent | None:
    """Among one thread's events, sorted by start, the last one open at this time."""
    place = bisect_right(starts, time) - 1
    if place < 0:
        return None
    event: HostEvent | None = events[place]
    while event is not None and event.end < time:
        event = event.parent
    return event
