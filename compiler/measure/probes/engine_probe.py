"""The probe of a graph that our own engine compiled.

The graph is built again from its artifact: the same kernels, with a clock around each kernel call
(`engine_unit`), and the same Python, instrumented. Launcher, memory plan and pool are the graph's
own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import fx

from tcw.compiler.measure.compiled.alone import Boxed, NotAlone
from tcw.compiler.measure.compiled.engine_graphs import AtenGraph, EngineGraph
from tcw.compiler.measure.compiled.engine_unit import ClockedUnit, Observer
from tcw.compiler.measure.probes.aten_probe import AtenProbe
from tcw.compiler.measure.probes.clock import Clock, HostClock
from tcw.compiler.measure.probes.code_probe import CodeProbe, Mark, Spans, marked, noting
from tcw.compiler.measure.probes.engine_memory import ArtifactMemory
from tcw.compiler.measure.probes.steps import GraphStep, See
from tcw.compiler.measure.probes.wrapper_code import CalledStep, Rules, WrapperCode, instrumented


class EngineProbe(CodeProbe):
    """If the unit cannot be built, there are no readings of kernels, and `unmeasured` says why."""

    _live: EngineGraph

    def __init__(self, graph: EngineGraph) -> None:
        super().__init__(graph.graph, graph)
        self._artifact = artifact = graph.compiled.artifact
        self._segments: dict[str, list[CalledStep]] = {
            segment.name: [] for segment in artifact.segments
        }
        """The kernels that each segment calls."""
        for site in artifact.sites:
            text = f"{site.function}({site.pointers})"
            step = CalledStep("kernel", site.function, text, measured=False)
            self._segments[site.segment].append(step)
        self.memory = ArtifactMemory(artifact.extra, len(self.steps), artifact.device)
        """Which buffers each step reads and writes, and which nodes they hold."""

    @cached_property
    def code(self) -> WrapperCode:
        artifact = self._artifact
        if artifact.entry:
            calls = enumerate(self._segments[artifact.entry])
            return WrapperCode([GraphStep(i, step.kind, step.name, step.text) for i, step in calls])
        targets = {b.name: b.target for b in artifact.bindings if b.kind == "operation"}

        def steps_of(_: ast.Call, called: str) -> Sequence[CalledStep]:
            if called in targets:
                return [CalledStep("aten", targets[called])]
            return self._segments.get(called, ())

        layouts = [b.name for b in artifact.bindings if b.target == "laid_out"]
        file = self._live.compiled.call.__code__.co_filename
        return instrumented(artifact.wrapper, file, Rules(steps_of, finishing=layouts))

    @cached_property
    def names(self) -> dict[str, Any]:
        if self._artifact.entry:
            return {}
        functions = self._unit.functions if self._unit is not None else {}
        return {**self._live.compiled.call.__globals__, **functions}

    @cached_property
    def _unit(self) -> ClockedUnit | None:
        """The unit with clocks; None if there is no such unit."""
        if not self._artifact.unit:
            return None
        try:
            return ClockedUnit(self._artifact, self._live.compiled.call)
        except NotAlone as reason:
            self.unmeasured = str(reason)
            return None

    @cached_property
    def _kernels(self) -> list[int]:
        """Index of the step of each kernel call in the unit."""
        return [step.index for step in self.steps if step.kind == "kernel"]

    def uninstrumented(self) -> Boxed:
        entry, call = self._artifact.entry, self._live.compiled.call
        whole: Boxed = self._unit.functions.get(entry, call) if self._unit is not None else call
        return whole

    def noting(self, call: Boxed, clock: HostClock, base: int, marks: list[Mark]) -> Boxed:
        unit = self._unit
        if unit is None:
            return super().noting(call, clock, base, marks)

        def clear() -> None:
            marks.clear()
            unit.clear()

        def notes() -> tuple[list[Mark], bytes]:
            return marks[:], unit.noted()

        def read(noted: tuple[list[Mark], bytes]) -> tuple[Spans, int]:
            steps, cost = marked(base, noted[0])
            kernels = unit.taken(noted[1])
            steps += [(base + 1 + self._kernels[number], at, ns) for number, at, ns in kernels]
            return steps, cost + len(kernels) * unit.pair_ns

        return noting(call, clock, base, clear, notes, read)

    def ranged(self, timed: Boxed, clock: Clock, base: int) -> Boxed:
        """A kernel's range is opened and closed by the unit's observer."""

        def at(site: int, over: int, call: Any, numbers: Any) -> None:
            (clock.stop if over else clock.start)(base + 1 + self._kernels[site])

        return self._observed(timed, Observer(at))

    def _observed(self, call: Boxed, callback: Any) -> Boxed:
        """The call, in which the unit calls back at each kernel."""
        unit = self._unit
        if unit is None:
            return call

        def run(arguments: list[Any]) -> Any:
            unit.observe(callback)
            try:
                return call(arguments)
            finally:
                unit.observe(None)

        return run

    def begins(self, variables: Mapping[str, Any]) -> None:
        numbers = {
            name: variable for name, variable in variables.items() if isinstance(variable, int)
        }
        self.memory.numbers.update(numbers)

    @contextmanager
    def observing(self, see: See, before: See | None = None) -> Iterator[None]:
        """See `CodeProbe`. The tensors are the buffers that the step reads or writes.

        `before` also gets the graph's numeric arguments by node name. After a step, overwritten
        buffers (`memory.steps[step.index].ends`) are left out: only `before` shows them. An
        exception of either ends the observation, and is raised when the graph has run. If their
        unit cannot be built (`unmeasured`), kernels are left out.
        """
        observer = _Observation(self, see, before)
        with (
            super().observing(observer.after, observer.before)
            if self.code.observed
            else (self.instead(self.uninstrumented()))
        ):
            observed = self._observed(self._live.call, Observer(observer.kernel))

            def run(arguments: list[Any]) -> Any:
                observer.begin(*given_numbers(self._live.module, arguments))
                outputs = observed(arguments)
                if observer.failed is not None:
                    raise observer.failed
                return outputs

            with self.instead(run):
                yield


class _Observation:
    """Turns the reports of a graph's code at its steps into calls of `see` and `before`."""

    def __init__(self, probe: EngineProbe, see: See, before: See | None) -> None:
        self.memory = probe.memory
        self.steps = probe.steps
        self.sites = list(zip(probe._kernels, probe._artifact.sites, strict=True))
        self._see = see
        self._before = before
        self._passed: Mapping[str, int] = {}
        self.failed: BaseException | None = None
        """The exception that `see` or `before` raised."""

    def begin(self, passed: Mapping[str, int], symbols: Mapping[str, int]) -> None:
        """A call of the graph begins. `passed` are its numeric arguments, `symbols` the known
        values of size symbols."""
        self.failed = None
        self._passed = passed
        self.memory.numbers = dict(symbols)

    def before(self, step: GraphStep, tensors: Mapping[str, Any]) -> None:
        """A step begins, with these arguments by name."""
        if self._before is not None:
            self._say(self._before, step, {**self._passed, **tensors})

    def after(self, step: GraphStep, tensors: Mapping[str, Any]) -> None:
        """The step is over; its results are included."""
        self._say(self._see, step, tensors)

    def kernel(self, site: int, over: int, call: Any, numbers: Any) -> None:
        try:
            index, place = self.sites[site]
            step, about = self.steps[index], self.memory.steps[index]
            pointers = call.contents.pointers
            if over:
                names = dict.fromkeys([n for n in about.reads if n not in about.ends])
                names.update(dict.fromkeys(about.writes))
                self.after(step, self.memory.at(index, names, pointers))
            else:
                known = {name: numbers[i] for i, name in enumerate(place.symbols)}
                self.memory.numbers.update(known)
                self.before(step, self.memory.at(index, about.reads, pointers))
        except BaseException as problem:  # it must not propagate through C
            self.failed = self.failed or problem

    def _say(self, listener: See, step: GraphStep, tensors: Mapping[str, Any]) -> None:
        if self.failed is None:
            try:
                listener(step, tensors)
            except BaseException as problem:  # the user's call continues to its end
                self.failed = problem


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
