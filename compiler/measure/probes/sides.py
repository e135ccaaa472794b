"""The probes of one call: which clocks time which side, on a CPU and on a GPU."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

from tcw.compiler.measure.calls.runs import Model, grad_mode
from tcw.compiler.measure.compiled.engine_graphs import EngineGraph
from tcw.compiler.measure.probes.between import LOSS, EagerRun
from tcw.compiler.measure.probes.call_rounds import InPieces, Probe, Probing
from tcw.compiler.measure.probes.clock import Clock, HostClock, Reading, timed_by
from tcw.compiler.measure.probes.code_probe import CodeProbe
from tcw.compiler.measure.probes.device_clock import device_clock
from tcw.compiler.measure.probes.eager_probe import EagerProbe, call_cost
from tcw.compiler.measure.probes.laps import Lap, LapKind, timed
from tcw.compiler.trace.records.profile import CallPhase, EagerOperation

_MISSED = 0.05
"""The share of the operations that a profiler may miss while its figures are still used."""


class EagerSide:
    """The eager call under a probe.

    torch's own profiler times its operations. It works below Python, so the operations run as
    usual. A dispatch mode goes through Python for each operation, which takes as long as a small
    operation, and evicts from the caches what the next one needs.
    """

    def __init__(self, model: Model, call: int, on_device: bool) -> None:
        self.on_device = on_device
        self.probe = EagerProbe(model, call)
        self.by_profiler = True
        """False if the profiler saw other operations: then a dispatch mode times them."""

    def describe(self, run: InPieces) -> None:
        """Make the call once, to know its operations."""
        with grad_mode(run.mode), self.probe.describing():
            timed(run.pieces(), during=self.probe.during)

    def check(self, lap: Lap) -> None:
        """Check whether a run under the profiler shows the described operations."""
        if self.on_device:
            return
        seen = {reading.key for reading in readings_of(self.probe.operations, lap.eager)}
        wanted = [key for key, operation in enumerate(self.probe.operations) if operation.launches]
        missed = sum(key not in seen for key in wanted)
        self.by_profiler = missed <= _MISSED * len(wanted)

    def read(self, laps: Iterable[Lap]) -> None:
        """Turn what the profiler saw into readings, with operations as keys."""
        if self.by_profiler and not self.on_device:
            for lap in laps:
                lap.readings = readings_of(self.probe.operations, lap.eager)

    @contextmanager
    def probing(self) -> Iterator[Probing]:
        """Entered around one run."""
        if self.on_device:
            with device_clock() as device:
                yield Probing(device, profile=device, around=partial(self.probe.timing, device))
        elif self.by_profiler:
            with device_clock(device=False) as host:
                yield Probing(profile=host, between=True, during=_named)
        else:
            clock = HostClock(call_cost())
            yield Probing(clock, around=partial(self.probe.timing, clock))


def readings_of(operations: Sequence[EagerOperation], runs: Sequence[EagerRun]) -> list[Reading]:
    """The profiler's readings of the described operations. What runs inside another operation, and
    is not described itself, has no reading."""
    return _in_order(operations, runs) or _by_count(operations, runs)


def _in_order(operations: Sequence[EagerOperation], runs: Sequence[EagerRun]) -> list[Reading]:
    """Both in the order of the call; empty if their operations differ. An operation of autograd
    that is seen inside another is described before it, and its time is subtracted from the
    other's."""
    wanted = [
        _like(eager_operation.phase, eager_operation.operation) for eager_operation in operations
    ]
    seen = [_like(eager_run.phase, eager_run.name) for eager_run in runs]
    found: list[Reading] = []
    place = 0
    within: dict[int, EagerRun] = {}
    for key, operation in enumerate(operations):
        while place < len(runs) and not runs[place].launches:
            if seen[place] in wanted[key : key + _NEAR]:
                break
            place += 1  # a view that no mode sees
        if place < len(runs) and seen[place] == wanted[key]:
            run = runs[place]
            ns = run.ns - sum(eager_run.ns for eager_run in within.values())
            found.append(Reading(key, run.start, max(0, ns)))
            place, within = place + 1, {}
            continue
        inner = runs[place].inner if place < len(runs) else ()
        for number, eager_run in enumerate(inner):
            if number not in within and _like(eager_run.phase, eager_run.name) == wanted[key]:
                within[number] = eager_run
                found.append(Reading(key, eager_run.start, eager_run.ns))
                break
        else:
            if operation.launches:
                return []
    return found if not any(run.launches for run in runs[place:]) else []


_NEAR = 8
"""A seen view may be one of the next described operations, up to this many."""


def _like(phase: str, name: str) -> tuple[str, str]:
    """(phase, `aten.add`) for `aten.add_.Tensor`: without a mode, gradients are added in place."""
    return phase, ".".join(name.split(".")[:2]).rstrip("_")


def _by_count(operations: Sequence[EagerOperation], runs: Sequence[EagerRun]) -> list[Reading]:
    """Matches the n-th of a name in its phase."""
    known: dict[tuple[str, str], list[EagerRun]] = defaultdict(list)
    for run in runs:
        known[_like(run.phase, run.name)].append(run)
    taken: Counter[tuple[str, str]] = Counter()
    found: list[Reading] = []
    for key, operation in enumerate(operations):
        like = _like(operation.phase, operation.operation)
        if taken[like] < len(known[like]):
            run = known[like][taken[like]]
            found.append(Reading(key, run.start, run.ns))
        taken[like] += 1
    return found


class CompiledSide:
    """The compiled call with clocks in its graphs."""

    def __init__(
        self, probes: Sequence[CodeProbe], on_device: bool, engine_graphs: Sequence[EngineGraph]
    ) -> None:
        """`engine_graphs`: those of our own engine, whose probes keep host time themselves."""
        self.on_device = on_device
        self.graphs = list(probes)
        for probe in probes:
            with probe.timing(HostClock(), 0):
                pass  # this builds what it needs, and finds out what it cannot time
        self.missing = "; ".join(
            f"{probe.graph}: {probe.unmeasured}" for probe in probes if probe.unmeasured
        )
        """What cannot be timed step by step, and why."""
        self.bases = [0]
        for probe in self.graphs:
            self.bases.append(self.bases[-1] + 1 + len(probe.steps))
        self.end = self.bases.pop()
        """The first key that belongs to no graph."""
        self._engine_graphs = {graph.graph: graph for graph in engine_graphs}

    def probes(self) -> dict[LapKind, Probe]:
        """Each way to run it -> its probe."""
        if self.on_device:
            return {"probed": self._profiled}
        return {"probed": self._on_host, "between": self._profiled}

    @contextmanager
    def _timing(self, clock: Clock, marked: bool = False) -> Iterator[None]:
        """`marked`: the clock has to see each graph, even if not its steps."""
        with ExitStack() as stack:
            for probe, base in zip(self.graphs, self.bases, strict=True):
                own_time = marked and not self.on_device
                graph = self._engine_graphs.get(probe.graph) if own_time else None
                stack.enter_context(
                    probe.timing(clock, base)
                    if graph is None
                    else graph.replaced(timed_by(graph.compiled.call, clock, base))
                )
            yield

    @contextmanager
    def _on_host(self) -> Iterator[Probing]:
        clock = HostClock()
        with self._timing(clock):
            yield Probing(clock)

    @contextmanager
    def _profiled(self) -> Iterator[Probing]:
        with device_clock(self.on_device) as clock, self._timing(clock, marked=True):
            yield Probing(clock, profile=clock, between=True, during=_named)


def _named(phase: CallPhase, part: Any) -> AbstractContextManager[Any]:
    """Marks the computation of the loss in a profile."""
    if part != "loss":
        return nullcontext()
    named: AbstractContextManager[Any] = torch._C._profiler._RecordFunctionFast(LOSS)
    return named
