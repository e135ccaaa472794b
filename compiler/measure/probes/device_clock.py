"""A clock that reads a device: each key is a range of torch's profiler.

A range contains what the host launched in it, on any thread. Its time is that of those kernels,
copies and fills by the device's own clock (CUPTI). Readings are available when the profile has
ended.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch

from tcw.compiler.control.hooks import Hook
from tcw.compiler.measure.probes.clock import LateReadings, Reading
from tcw.compiler.measure.probes.profiler_trace import (
    BEGIN,
    END,
    RANGE,
    ProfilerTrace,
    calls,
    parse,
)

HOOK = Hook(
    name="device clock",
    offers="profile: the time of a GPU's kernels in each part of a call",
    needs=("torch._C:_profiler._RecordFunctionFast", "torch.cuda:_sleep"),
    test="measure/probes/test_device_clock.py",
)


class NotRead(Exception):
    """The clock was read before its profile had ended."""


class DeviceClock:
    """A `Clock`. Without a device, its readings are the host's."""

    def __init__(self, device: bool = True) -> None:
        self.device = device
        self._range = torch._C._profiler._RecordFunctionFast
        self._open: dict[int, list[Any]] = defaultdict(list)
        self._later: list[Callable[[], LateReadings]] = []
        self._calls: list[ProfilerTrace] = []

    def start(self, key: int) -> None:
        made = self._range(f"{RANGE}{key}")
        self._open[key].append(made)
        made.__enter__()

    def stop(self, key: int) -> None:
        if self._open[key]:
            self._open[key].pop().__exit__(None, None, None)

    def later(self, read: Callable[[], LateReadings]) -> None:
        self._later.append(read)

    def took(self, ns: int) -> None:
        """Ignored: host time is not of interest here."""

    @property
    def trace(self) -> ProfilerTrace:
        """Everything that the profiler saw of the last call."""
        return self.calls[-1]

    @property
    def calls(self) -> list[ProfilerTrace]:
        """One trace per call; without `begin`, one trace of everything."""
        if not self._calls:
            raise NotRead("the profile of this clock has not ended")
        return self._calls

    def ended(self, trace: ProfilerTrace) -> None:
        self._open.clear()
        self._calls = calls(trace)

    def begin(self) -> None:
        """Begin a further call: readings are those of the last."""
        self._later.clear()
        with self._range(BEGIN):
            pass

    def end(self) -> None:
        """The call is over: what follows does not belong to it."""
        with self._range(END):
            pass

    def readings(self) -> list[Reading]:
        """On a device, `start` is when its first kernel ran, or else the host's start."""
        by_host = [reading for read_later in self._later for reading in read_later()[0]]
        return read(self.trace, self.device) + [
            Reading(reading.key, reading.start, reading.ns, launches=0, host_ns=reading.ns)
            for reading in by_host
        ]

    def busy_ns(self, since: int | None = None, until: int | None = None) -> int:
        """Nanoseconds in which the device did any of the work launched between these two times of
        `perf_counter_ns`. For the rest of a call's time, the device was idle."""
        return self.trace.busy_ns(since, until)


def read(trace: ProfilerTrace, device: bool = True) -> list[Reading]:
    """A reading for each range with a key, in the order in which the host opened them."""
    ranges = [(event, event.key) for event in trace.events()]
    found: list[Reading] = []
    for event, key in sorted(ranges, key=lambda one: (one[0].start, -one[0].end)):
        if key is None:
            continue
        if not device:
            found.append(Reading(key, event.start, event.ns))
            continue
        work = trace.work_of(event)
        found.append(
            Reading(
                key,
                work[0].start if work else event.start,
                sum(device_work.ns for device_work in work),
                len(work),
                tuple(device_work.name for device_work in work),
                event.ns,
            )
        )
    return found


@contextmanager
def device_clock(device: bool = True) -> Iterator[DeviceClock]:
    """Profile what runs inside the block; the clock can be read after it.

    Without `device`, only the host is profiled. Enter probes inside the block, and run one call.
    Work launched earlier must have finished (`torch.cuda.synchronize`).
    """
    from torch.profiler import ProfilerActivity, profile

    clock = DeviceClock(device)
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * device
    with profile(activities=activities, acc_events=True) as profiler:
        began = perf_counter_ns()
        with clock._range(f"{RANGE}clock"):
            pass
        yield clock
        if device:
            torch.cuda.synchronize()
    clock.ended(parse(exported(profiler), began))


def exported(profiler: Any) -> list[dict[str, Any]]:
    """The events of a finished profile, as torch exports them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_bytes())["traceEvents"]
    return events
