"""The probes of one call: which clocks look at which side, on a CPU and on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch

from compiler.measure.engine_graphs import EngineGraph
from compiler.measure.kernels import NotAlone
from compiler.measure.probes.between import LOSS
from compiler.measure.probes.clock import Clock, HostClock, own_cost
from compiler.measure.probes.device_clock import device_clock
from compiler.measure.probes.eager_probe import EagerProbe, call_cost
from compiler.measure.probes.graph_probe import GraphProbe
from compiler.trace.records.profile import CallPhase
from workbench.worker.profiling_rounds import Looked, Probe, Way, timed
from workbench.worker.runs import Model, PreparedRun, grad_mode


class EagerSide:
    """The eager call under one probe, or under two."""

    def __init__(self, model: Model, call: int, on_device: bool) -> None:
        self.on_device = on_device
        self.probe, self._again = EagerProbe(model, call), EagerProbe(model, call)
        self._cost = call_cost()

    def describe(self, run: PreparedRun) -> None:
        """Make the call once, to know its operations."""
        with grad_mode(run.mode), self.probe.describing():
            timed(run.pieces(), during=self.probe.during)
        self._again.functions = self.probe.functions

    def probes(self) -> dict[Way, Probe]:
        """By way to run it."""
        return {"probed": self._on_device} if self.on_device else self._on_host()

    def _on_host(self) -> dict[Way, Probe]:
        return {"probed": self._once, "twice": self._twice, "between": self._profiled}

    @contextmanager
    def _once(self) -> Iterator[Looked]:
        clock = HostClock(self._cost)
        with self.probe.timing(clock):
            yield Looked(clock)

    @contextmanager
    def _twice(self) -> Iterator[Looked]:
        inner, outer = HostClock(self._cost), HostClock(self._cost)
        # the mode that is entered last is called first
        with self.probe.timing(inner), self._again.timing(outer):
            yield Looked(inner, outer)

    @contextmanager
    def _profiled(self) -> Iterator[Looked]:
        """By the clock of what the compiled call runs outside of graphs."""
        with device_clock(device=False) as clock:
            yield Looked(profile=clock, between=True, during=_named)

    @contextmanager
    def _on_device(self) -> Iterator[Looked]:
        with device_clock() as clock, self.probe.timing(clock):
            yield Looked(clock, profile=clock)


class CompiledSide:
    """The compiled call with clocks in its graphs."""

    def __init__(
        self, probes: Sequence[GraphProbe], on_device: bool, engine_graphs: Sequence[EngineGraph]
    ) -> None:
        """`engine_graphs`: those of our own engine, whose probes keep their own time."""
        self.on_device = on_device
        self.graphs: list[GraphProbe] = []
        self.missing = ""
        """Why some graphs have no probe."""
        reasons: dict[str, None] = {}
        for probe in probes:
            try:
                with probe.timing(HostClock(), 0):
                    self.graphs.append(probe)
            except NotAlone as error:
                reasons[f"{probe.graph}: {error}"] = None
        self.missing = "; ".join(reasons)
        self.bases = [0]
        for probe in self.graphs:
            self.bases.append(self.bases[-1] + 1 + len(probe.steps))
        self.end = self.bases.pop()
        """The first key that is no graph's."""
        self._cost = own_cost()
        self._engine_graphs = {graph.graph: graph for graph in engine_graphs}

    def probes(self) -> dict[Way, Probe]:
        """By way to run it."""
        if self.on_device:
            return {"probed": self._profiled}
        return {"probed": self._on_host, "between": self._profiled}

    @contextmanager
    def _timing(self, clock: Clock, marked: bool = False) -> Iterator[None]:
        """`marked`: the clock has to see each graph, if not its steps."""
        with ExitStack() as stack:
            for probe, base in zip(self.graphs, self.bases, strict=True):
                graph = self._engine_graphs.get(probe.graph) if marked else None
                stack.enter_context(
                    probe.timing(clock, base) if graph is None else _marked(graph, clock, base)
                )
            yield

    @contextmanager
    def _on_host(self) -> Iterator[Looked]:
        clock = HostClock(self._cost)
        with self._timing(clock):
            yield Looked(clock)

    @contextmanager
    def _profiled(self) -> Iterator[Looked]:
        with device_clock(self.on_device) as clock, self._timing(clock, marked=True):
            yield Looked(clock, profile=clock, between=True, during=_named)


@contextmanager
def _marked(graph: EngineGraph, clock: Clock, key: int) -> Iterator[None]:
    def run(arguments: list[Any]) -> Any:
        clock.start(key)
        try:
            return graph.compiled.call(arguments)
        finally:
            clock.stop(key)

    with graph.replaced(run):
        yield


def _named(phase: CallPhase, part: Any) -> AbstractContextManager[Any]:
    """Marks what makes the loss in a profile."""
    if part != "loss":
        return nullcontext()
    named: AbstractContextManager[Any] = torch._C._profiler._RecordFunctionFast(LOSS)
    return named
