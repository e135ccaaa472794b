"""Observes a graph that our own engine compiled, while the user's call runs it.

The graph is built again from its artifact: the same kernels, with a clock around each kernel call
(`engine_unit`), and the same Python, with a clock around each call into ATen (`clocked_wrapper`).
Launcher, memory plan and pool are the graph's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

import msgspec
import torch
from torch import fx

from tcw.compiler.codegen.launcher.segment import KernelSite
from tcw.compiler.measure.compiled.alone import NotAlone
from tcw.compiler.measure.compiled.engine_graphs import EngineGraph, built_unit
from tcw.compiler.measure.probes.aten_probe import AtenGraph, AtenProbe, said
from tcw.compiler.measure.probes.clock import Clock, HostClock, timed_by
from tcw.compiler.measure.probes.clocked_wrapper import Statement, statements, surrounded
from tcw.compiler.measure.probes.engine_memory import ArtifactMemory
from tcw.compiler.measure.probes.engine_observer import EngineObserver
from tcw.compiler.measure.probes.engine_unit import Observer, Readings, clocked
from tcw.compiler.measure.probes.graph_probe import GraphStep, See
from tcw.compiler.measure.probes.stamps import (
    NOTE,
    NOW,
    STAMP,
    Spans,
    cost_of_stamps,
    noting,
    stamped,
)
from tcw.compiler.runtime.artifact import Artifact


class EngineProbe:
    """A `GraphProbe` of a graph of our own engine."""

    unmeasured = ""
    """Why kernels are not timed; known once `timing` was first entered."""

    def __init__(self, graph: EngineGraph) -> None:
        self.graph = graph.graph
        self.steps: Sequence[GraphStep]
        self._graph = graph
        self._artifact = graph.compiled.artifact
        self._steps = _Steps(self._artifact)
        self.steps = tuple(self._steps.all)
        self.memory = ArtifactMemory(self._artifact.extra, len(self.steps), self._artifact.device)
        """Which buffers each step reads and writes, and which nodes they hold."""
        self._unit: _ClockedUnit | None = None
        self._timed: Callable[[list[Any]], Any] | None = None
        self._stamps: list[int] = []

    @contextmanager
    def timing(self, clock: Clock, base: int) -> Iterator[None]:
        """See `GraphProbe`. The first time builds the unit, before it yields.

        If that is impossible, there are no readings of kernels, and `unmeasured` says why.
        """
        if not isinstance(clock, HostClock):
            with self._graph.replaced(self._clocked(clock, base)):
                yield
            return
        if self._timed is None:
            self._timed = self._with_clocks()
        timed, unit, stamps = self._timed, self._unit, self._stamps
        kernel_keys = [base + 1 + index for index in self._steps.kernels]
        call_keys = [base + 1 + index for index in self._steps.calls]

        def clear() -> None:
            stamps.clear()
            if unit is not None:
                unit.readings.clear()

        def notes() -> tuple[list[int], bytes]:
            return stamps[:], unit.readings.noted() if unit is not None else b""

        def read(noted: tuple[list[int], bytes]) -> tuple[Spans, int]:
            steps, cost = stamped(call_keys, noted[0])
            if unit is not None:
                kernels = unit.readings.taken(noted[1])
                cost += len(kernels) * unit.readings.pair_ns
                steps += [(kernel_keys[number], begun, ns) for number, begun, ns in kernels]
            return steps, cost

        with self._graph.replaced(noting(timed, clock, base, clear, notes, read)):
            yield

    def _clocked(self, clock: Clock, base: int) -> Callable[[list[Any]], Any]:
        """The graph's callable with a clock that takes no host times: a device clock, which reads
        ranges. A kernel's range is opened and closed by the unit's observer."""
        calls = iter(self._steps.calls)

        def around(statement: Statement) -> tuple[str, str]:
            key = base + 1 + next(calls)
            return f"_start({key})", f"_stop({key})"

        timed = self._rewritten(around, {"_start": clock.start, "_stop": clock.stop})
        unit, callback = self._unit, _ranges(clock, base, self._steps.kernels)
        whole = timed_by(timed, clock, base)

        def run(arguments: list[Any]) -> Any:
            if unit is None:
                return whole(arguments)
            unit.readings.observe(callback)
            try:
                return whole(arguments)
            finally:
                unit.readings.observe(None)

        return run

    @contextmanager
    def observing(self, see: See, before: See | None = None) -> Iterator[None]:
        """See `GraphProbe`. The tensors are the buffers that the step reads or writes.

        `before` is called before each step with what the step reads, and with the graph's numeric
        arguments by node name. After a step, overwritten buffers (`memory.steps[step.index].ends`)
        are left out: only `before` shows them. An exception of either ends the observation, and is
        raised when the graph has run. If their unit cannot be built (`unmeasured`), kernels are
        left out.
        """
        sites = list(zip(self._steps.kernels, self._steps.sites, strict=True))
        observer = EngineObserver(self.memory, self.steps, sites, see, before)
        calls = iter(self._steps.calls)
        observed = self._rewritten(
            lambda statement: said(next(calls), statement),
            {"_starts": observer.starts, "_ended": observer.ended},
        )
        unit = self._unit

        def run(arguments: list[Any]) -> Any:
            observer.begin(*given_numbers(self._graph.module, arguments))
            if unit is not None:
                unit.readings.observe(observer.callback)
            try:
                outputs = observed(arguments)
            finally:
                if unit is not None:
                    unit.readings.observe(None)
            if observer.failed is not None:
                raise observer.failed
            return outputs

        with self._graph.replaced(run):
            yield

    def _with_clocks(self) -> Callable[[list[Any]], Any]:
        """The graph's callable with clocks."""
        cost_of_stamps()  # measured now, not while a call is timed
        return self._rewritten(
            lambda statement: (NOTE, NOTE), {STAMP: self._stamps.append, NOW: perf_counter_ns}
        )

    def _rewritten(
        self, around: Callable[[Statement], tuple[str, str]], names: dict[str, Any]
    ) -> Callable[[list[Any]], Any]:
        """The graph's callable on the unit with clocks, with statements, which may use `names`,
        around each call into ATen."""
        artifact, known = self._artifact, self._steps.operations
        functions = {**self._segments(), **names}
        if not artifact.entry:
            text = surrounded(
                artifact.wrapper,
                lambda statement: around(statement) if statement.called in known else None,
                self._steps.layouts,
            )
            artifact = msgspec.structs.replace(artifact, wrapper=text)
        return self._graph.calling(functions, artifact)

    def _segments(self) -> dict[str, Callable[..., Any]]:
        """The segments of the unit with clocks; empty if there is no such unit."""
        if self._unit is None and self._artifact.unit and not self.unmeasured:
            try:
                self._unit = _ClockedUnit(self._graph, len(self._steps.kernels))
            except NotAlone as reason:
                self.unmeasured = str(reason)
        return self._unit.functions if self._unit is not None else {}


def _ranges(clock: Clock, base: int, kernels: Sequence[int]) -> Any:
    """An observer of a unit that starts and stops a clock around each kernel call; `kernels`: the
    step of each."""

    def at(call: int, over: int, pointers: Any, numbers: Any) -> None:
        (clock.stop if over else clock.start)(base + 1 + kernels[call])

    return Observer(at)


def engine_probe(graph: EngineGraph | AtenGraph) -> EngineProbe | AtenProbe:
    """The probe of a graph, whether our engine or ATen runs it."""
    return EngineProbe(graph) if isinstance(graph, EngineGraph) else AtenProbe(graph)


def given_numbers(
    module: fx.GraphModule, arguments: Sequence[Any]
) -> tuple[dict[str, int], dict[str, int]]:
    """(numeric arguments by node name, these plus the values of the size symbols) of a call."""
    passed: dict[str, int] = {}
    symbols: dict[str, int] = {}

    def take(size: Any, number: Any) -> None:
        expression = getattr(getattr(size, "node", None), "expr", None)
        if isinstance(number, int) and getattr(expression, "is_Symbol", False):
            symbols[str(expression)] = number

    nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, argument in zip(nodes, arguments, strict=False):
        value = node.meta.get("val")
        if isinstance(argument, int):
            passed[node.name] = argument
            take(value, argument)
        elif isinstance(argument, torch.Tensor) and isinstance(value, torch.Tensor):
            for size, number in zip(value.shape, argument.shape, strict=False):
                take(size, number)
    return passed, {**passed, **symbols}


class _Steps:
    """The calls of a graph's code according to its artifact, which may come from the cache."""

    def __init__(self, artifact: Artifact) -> None:
        self.all: list[GraphStep] = []
        self.kernels: list[int] = []
        """Call number in the unit -> index of its step."""
        self.calls: list[int] = []
        """Index of the step of each call into ATen, in order."""
        self.operations = {b.name: b.target for b in artifact.bindings if b.kind == "operation"}
        self.layouts = [b.name for b in artifact.bindings if b.target == "laid_out"]
        self.sites: list[KernelSite] = []
        """One per kernel call."""
        for run in [artifact.entry] if artifact.entry else self._runs(artifact):
            if isinstance(run, Statement):
                self.calls.append(len(self.all))
                self._add("aten", self.operations[run.called], run.text)
                continue
            for site in artifact.sites:
                if site.segment == run:
                    self.kernels.append(len(self.all))
                    self.sites.append(site)
                    self._add("kernel", site.function, f"{site.function}({site.pointers})")

    def _runs(self, artifact: Artifact) -> Iterator[Statement | str]:
        segments = {segment.name for segment in artifact.segments}
        for statement in statements(artifact.wrapper):
            if statement.called in self.operations:
                yield statement
            elif statement.called in segments:
                yield statement.called

    def _add(self, kind: Any, name: str, text: str) -> None:
        self.all.append(GraphStep(len(self.all), kind, name, text))


class _ClockedUnit:
    """A graph's unit with clocks, built unless it is in the cache. Raises `NotAlone`."""

    def __init__(self, graph: EngineGraph, count: int) -> None:
        artifact = graph.compiled.artifact
        self.functions, handle = built_unit(graph, clocked(artifact.unit, artifact.sites))
        self.readings = Readings(handle, count)
