"""Each kernel of a call against the same operations in float64 (docs/notes/profile.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from torch import fx

from compiler.control.recorder import Recorder
from compiler.graphs.realised import kept_graphs
from compiler.measure.engine_graphs import EngineGraph
from compiler.measure.inductor_graphs import InductorGraph
from compiler.measure.kernels import NotAlone
from compiler.measure.named_graphs import named_graphs
from compiler.measure.precision.inductor_memory import InductorMemory
from compiler.measure.precision.verify import GraphVerifier, Memory, Verdict
from compiler.measure.probes.engine_probe import EngineProbe
from compiler.measure.probes.graph_probe import GraphProbe
from compiler.measure.probes.inductor_probe import InductorProbe
from compiler.measure.probes.naming import kernel_of_steps
from compiler.trace.matching import base_graph
from compiler.trace.records import Kernel, KernelPrecision, Progress, Warned
from workbench.worker.describe import class_name, message_of
from workbench.worker.ourselves import unrecorded


@dataclass
class Looked:
    """One compiled graph while it is verified."""

    probe: GraphProbe
    verifier: GraphVerifier
    kernels: dict[int, Kernel]
    """By index of the step."""


def verify(
    recorder: Recorder,
    kernels: Sequence[Kernel],
    of_inductor: Sequence[InductorGraph],
    of_engine: Sequence[EngineGraph],
    run: Callable[[], Any],
    number: int,
    wanted: Collection[str] = (),
) -> list[tuple[Kernel, Verdict]]:
    """Make one call with every graph looked into, and record what each kernel errs by.

    `kernels` and the graphs are those of one engine; `run` makes call `number`. Answers those that
    are cut out: what is outside of its bound, and kernels `wanted` by id. What cannot be done is
    recorded, and ends nothing.
    """
    recorder.emit(Progress(stage="run", activity="comparing each kernel with float64"))
    looked, refused = _looked(recorder, kernels, of_inductor, of_engine, wanted)
    try:
        with unrecorded(recorder), ExitStack() as stack:
            for one in list(looked):
                try:
                    first = _Once(one.verifier)
                    stack.enter_context(one.probe.observing(first.after, first.before))
                except NotAlone as error:
                    looked.remove(one)
                    refused.append((one.probe.graph, str(error)))
            run()
    except Exception as error:  # whatever the user's model raises on a later run
        reason = f"{class_name(error)}: {message_of(error, 300)}"
        recorder.emit(Warned(message=f"kernels were not compared: {reason}", asked=True))
        return []
    for graph, reason in refused:
        recorder.emit(Warned(message=f"kernels of {graph} were not compared: {reason}", asked=True))
    cut: list[tuple[Kernel, Verdict]] = []
    for one in looked:
        for kernel, verdicts in _by_kernel(one):
            recorder.emit(_record(one.probe.graph, kernel, number, verdicts))
            cut += [(kernel, verdict) for verdict in verdicts if verdict.cut is not None]
    return cut


class _Once:
    """A verifier that looks at the first run of its graph alone."""

    def __init__(self, verifier: GraphVerifier) -> None:
        self.verifier = verifier
        self._last = -1

    def before(self, step: Any, tensors: Any) -> None:
        if step.index > self._last:
            self.verifier.before(step, tensors)

    def after(self, step: Any, tensors: Any) -> None:
        if step.index > self._last:
            self._last = step.index
            self.verifier.after(step, tensors)


def _looked(
    recorder: Recorder,
    kernels: Sequence[Kernel],
    of_inductor: Sequence[InductorGraph],
    of_engine: Sequence[EngineGraph],
    wanted: Collection[str],
) -> tuple[list[Looked], list[tuple[str, str]]]:
    """The graphs, and (id, why not) of those that cannot be looked into."""
    own: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        if not kernel.predicted:
            own.setdefault(base_graph(kernel.graph), []).append(kernel)
    looked: list[Looked] = []
    refused: list[tuple[str, str]] = []

    def look(probe: GraphProbe, module: fx.GraphModule, memory: Callable[..., Memory]) -> None:
        mine = own.get(probe.graph, [])
        ids = {kernel.id: kernel for kernel in mine}
        of_steps = {i: ids[id] for i, id in kernel_of_steps(probe.steps, mine).items()}
        asked = {index for index, kernel in of_steps.items() if kernel.id in wanted}
        verifier = GraphVerifier(module, memory(of_steps), asked)
        looked.append(Looked(probe, verifier, of_steps))

    named = named_graphs(of_inductor, kernels) if of_inductor else None
    kept = kept_graphs(recorder)
    for id, graph in named.graphs.items() if named is not None else ():
        realised = kept.get(f"{id}/lowered")
        if realised is None:
            refused.append((id, "its lowering was not recorded"))
            continue
        probe = InductorProbe(id, graph)

        def memory(
            of_steps: dict[int, Kernel],
            realised: Any = realised,
            probe: Any = probe,
            code: str = graph.source,
        ) -> Memory:
            operations = {index: kernel.nodes for index, kernel in of_steps.items()}
            return InductorMemory(realised, probe.steps, operations, code)

        look(probe, realised.module, memory)
    refused += [(id, "its code was not found again") for id in (named.lost if named else ())]
    for engine_graph in of_engine:
        engine_probe = EngineProbe(engine_graph)
        look(engine_probe, engine_graph.module, lambda _, probe=engine_probe: probe.memory)
    return looked, refused


def _by_kernel(one: Looked) -> Iterator[tuple[Kernel, list[Verdict]]]:
    """Each kernel with the verdicts on its steps, in the order of the code."""
    found: dict[str, list[Verdict]] = {}
    kernels = {kernel.id: kernel for kernel in one.kernels.values()}
    for verdict in one.verifier.verdicts:
        kernel = one.kernels.get(verdict.step.index)
        if kernel is not None:
            found.setdefault(kernel.id, []).append(verdict)
    for id, verdicts in found.items():
        yield kernels[id], verdicts


def _record(graph: str, kernel: Kernel, call: int, verdicts: list[Verdict]) -> KernelPrecision:
    within = [verdict.within for verdict in verdicts]
    reasons = dict.fromkeys(verdict.reason for verdict in verdicts if verdict.reason)
    return KernelPrecision(
        graph=graph,
        kernel=kernel.id,
        call=call,
        outputs=tuple(output for verdict in verdicts for output in verdict.outputs),
        within=False if False in within else None if None in within else True,
        reason="; ".join(reasons),
    )
