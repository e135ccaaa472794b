"""Each kernel of a call against the same operations in float64 (docs/notes/profile.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from msgspec import structs
from torch import fx

from tcw.compiler.graphs.realised import kept_graphs
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import RandomState, prepare
from tcw.compiler.measure.compiled.alone import NotAlone
from tcw.compiler.measure.compiled.collected import Collected, RecordedModel
from tcw.compiler.measure.compiled.engine_graphs import AtenGraph, EngineGraph
from tcw.compiler.measure.compiled.named_graphs import named_graphs
from tcw.compiler.measure.host import Host, reason_of
from tcw.compiler.measure.precision.arithmetic import NotComparable
from tcw.compiler.measure.precision.inductor_memory import InductorMemory
from tcw.compiler.measure.precision.repro import RunOutcome, repros, tried
from tcw.compiler.measure.precision.verify import BufferContents, GraphVerifier, StepVerdict
from tcw.compiler.measure.probes.code_probe import CodeProbe
from tcw.compiler.measure.probes.engine_probe import engine_probe
from tcw.compiler.measure.probes.inductor_probe import InductorProbe
from tcw.compiler.measure.probes.steps import kernel_of_steps
from tcw.compiler.trace.matching import BACKWARD, base_graph
from tcw.compiler.trace.precision import worst_output
from tcw.compiler.trace.records import (
    Engine,
    Kernel,
    KernelPrecision,
    Record,
    SchedulerNode,
    Warned,
)


@dataclass
class ObservedGraph:
    """One compiled graph while it is verified."""

    probe: CodeProbe
    verifier: GraphVerifier
    kernels: dict[int, Kernel]
    """By index of the step."""


def verify_call(host: Host, model: RecordedModel, inputs: InputSet) -> str:
    """Verify the call that the settings name, on these inputs. Returns the id of the first wrong
    kernel; "" if there is none."""
    state = RandomState.now()
    try:
        run = prepare(model.model, inputs, host.settings.grad)
        return verify(host, model.records, model.collected, run, model.engine)
    finally:
        state.restore()


def verify(
    host: Host,
    records: Sequence[Record],
    graphs: Collected,
    run: Callable[[], Any],
    engine: Engine,
) -> str:
    """Make one call with every graph observed, and record each kernel's error.

    The records and graphs are those of one engine; `run` makes the call that the settings name. The
    first kernel outside its bound, for forward and backward separately, is cut out as a file; or
    else the requested one, by id or name. What cannot be done is recorded; nothing fails. Returns
    the id of the first wrong kernel.
    """
    wanted, number = host.settings.repro, host.settings.profiled_call
    kernels = [record for record in records if isinstance(record, Kernel)]
    host.begins("comparing each kernel with float64")
    observed, refused = _observed_graphs(host, kernels, graphs, wanted)
    try:
        with host.unrecorded(), ExitStack() as stack:
            for observed_graph in list(observed):
                try:
                    observing = observed_graph.probe.observing(
                        observed_graph.verifier.after, observed_graph.verifier.before
                    )
                    stack.enter_context(observing)
                except NotAlone as error:
                    observed.remove(observed_graph)
                    refused.append((observed_graph.probe.graph, str(error)))
            run()
    except Exception as error:  # anything that the user's model raises on a later run
        reason = reason_of(error)
        host.emit(Warned(message=f"kernels were not compared: {reason}", asked=True))
        return ""
    found = [
        (observed_graph, kernel, verdicts)
        for observed_graph in observed
        for kernel, verdicts in _by_kernel(observed_graph)
    ]
    cut: dict[bool, str] = {}
    for observed_graph, kernel, verdicts in found:
        if _to_cut(kernel, verdicts, wanted):
            cut.setdefault(observed_graph.probe.graph.endswith(BACKWARD), kernel.id)
    blind = _Blind(record for record in records if isinstance(record, SchedulerNode))
    for observed_graph, kernel, verdicts in found:
        record = blind.blamed(kernel, _record(observed_graph.probe.graph, kernel, number, verdicts))
        if kernel.id in cut.values():
            host.begins(f"cutting out {kernel.id}")
            record = _with_repro(host, record, observed_graph, kernel, verdicts, engine)
        host.emit(record)
    for record in _left(kernels, observed, dict(refused), number):
        host.emit(record)
    unnamed = [
        (observed_graph.probe.graph, _FROM_A_CACHE)
        for observed_graph in observed
        if observed_graph.verifier.verdicts and not observed_graph.kernels
    ]
    known = {base_graph(kernel.graph) for kernel in kernels}
    for graph, reason in (*refused, *unnamed):
        if graph not in known:
            host.emit(Warned(message=f"kernels of {graph} were not compared: {reason}", asked=True))
    wrong = (kernel.id for _, kernel, verdicts in found if any(v.within is False for v in verdicts))
    return next(wrong, "")


_FROM_A_CACHE = "its graph came from a cache, without its operations"


def _left(
    kernels: Sequence[Kernel],
    observed: Sequence[ObservedGraph],
    refused: Mapping[str, str],
    call: int,
) -> Iterator[KernelPrecision]:
    """The recorded kernels that the call does not run, or that cannot be compared."""
    ran = {
        observed_graph.probe.graph: bool(observed_graph.verifier.verdicts)
        for observed_graph in observed
    }
    done = {kernel.id for observed_graph in observed for kernel, _ in _by_kernel(observed_graph)}
    for kernel in kernels:
        graph = base_graph(kernel.graph)
        if kernel.predicted or kernel.id in done:
            continue
        reason = refused.get(graph, _FROM_A_CACHE)
        if graph in ran:
            reason = "its step was not found" if ran[graph] else f"call {call} does not run it"
        yield structs.replace(_record(graph, kernel, call, []), within=None, reason=reason)


class _Blind:
    """Kernels whose results could not be compared: their errors show in their readers. The nodes
    tell which kernel reads what another writes."""

    def __init__(self, nodes: Iterable[SchedulerNode]) -> None:
        self._nodes = {(node.graph, node.name): node for node in nodes}
        self._writers: dict[tuple[str, str], str] = {}

    def blamed(self, kernel: Kernel, record: KernelPrecision) -> KernelPrecision:
        """The record of the next kernel; for a wrong kernel, it says whose error it may be."""
        mine = [self._nodes.get((kernel.graph, name)) for name in kernel.nodes]
        own = [node for node in mine if node is not None]
        if record.within is None:
            written = [(kernel.graph, name) for node in own for name in node.writes]
            self._writers.update(dict.fromkeys(written, kernel.id))
        elif record.within is False:
            read = [self._writers.get((kernel.graph, name)) for node in own for name in node.reads]
            others = ", ".join(dict.fromkeys(id for id in read if id))
            if others:
                words = f"it reads what {others} made, which could not be compared by itself"
                reason = "; ".join(filter(None, (record.reason, words)))
                return structs.replace(record, reason=reason)
        return record


def _to_cut(kernel: Kernel, verdicts: Sequence[StepVerdict], wanted: str) -> bool:
    if wanted:
        return wanted in (kernel.id, kernel.name)
    return any(verdict.within is False for verdict in verdicts)


def _with_repro(
    host: Host,
    record: KernelPrecision,
    graph: ObservedGraph,
    kernel: Kernel,
    verdicts: Sequence[StepVerdict],
    engine: Engine,
) -> KernelPrecision:
    """The record with the kernel's part of the graph as a file, which has been run."""
    verdict = next((v for v in verdicts if v.within is False and v.cut), None)
    verdict = verdict or next((v for v in verdicts if v.cut), None)
    if verdict is None or verdict.cut is None:
        words = record.reason or "it was not run"
        return structs.replace(record, repro_note=f"it cannot be cut out: {words}")
    text, last = "", RunOutcome(None, "")
    try:
        for made in repros(graph.verifier.module, verdict.cut, kernel, engine, _words(record)):
            with host.unrecorded():
                last = tried(made)
            text = text if text and not last.shows else made
            if last.shows or record.within is not False:
                break
    except (NotComparable, RuntimeError) as error:
        if not text:
            return structs.replace(record, repro_note=f"it cannot be cut out: {error}")
    return structs.replace(
        record, repro=host.recorder.text(text), reproduces=last.shows, repro_note=last.words
    )


def _words(record: KernelPrecision) -> str:
    """The observed error, for the head of the file."""
    worst = worst_output(record)
    if worst is None or record.within is not False:
        return "In the model its results were within their bounds."
    more = f", {worst.note}" if worst.note else ""
    return (
        f"In the model {worst.node} was off by {worst.error:.2g} of its largest value, eager by "
        f"{worst.eager_error:.2g}, rounding explains {worst.bound:.2g}{more}."
    )


def _observed_graphs(
    host: Host,
    kernels: Sequence[Kernel],
    graphs: Collected,
    wanted: str,
) -> tuple[list[ObservedGraph], list[tuple[str, str]]]:
    """The graphs, and (id, reason) of those that cannot be observed."""
    own: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        if not kernel.predicted:
            own.setdefault(base_graph(kernel.graph), []).append(kernel)
    observed: list[ObservedGraph] = []
    refused: list[tuple[str, str]] = []

    def look(
        probe: CodeProbe, module: fx.GraphModule, memory: Callable[..., BufferContents]
    ) -> None:
        mine = own.get(probe.graph, [])
        ids = {kernel.id: kernel for kernel in mine}
        of_steps = {i: ids[id] for i, id in kernel_of_steps(probe.steps, mine).items()}
        asked = {i for i, kernel in of_steps.items() if wanted in (kernel.id, kernel.name)}
        verifier = GraphVerifier(module, memory(of_steps), asked)
        observed.append(ObservedGraph(probe, verifier, of_steps))

    named = named_graphs(graphs.of_inductor, kernels) if graphs.of_inductor else None
    kept = kept_graphs(host.recorder)
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
        ) -> BufferContents:
            operations = {index: kernel.nodes for index, kernel in of_steps.items()}
            return InductorMemory(realised, probe.code.reads, operations, code)

        look(probe, realised.module, memory)
    refused += [(id, "its code was not found again") for id in (named.lost if named else ())]
    ours: list[EngineGraph | AtenGraph] = [*graphs.of_engine, *graphs.left_to_aten]
    for engine_graph in ours:
        own_probe = engine_probe(engine_graph)
        look(own_probe, engine_graph.module, lambda _, probe=own_probe: probe.memory)
    return observed, refused


def _by_kernel(graph: ObservedGraph) -> Iterator[tuple[Kernel, list[StepVerdict]]]:
    """Each kernel with the verdicts on its steps, in the order of the code."""
    found: dict[str, list[StepVerdict]] = {}
    kernels = {kernel.id: kernel for kernel in graph.kernels.values()}
    for verdict in graph.verifier.verdicts:
        kernel = graph.kernels.get(verdict.step.index)
        if kernel is not None:
            found.setdefault(kernel.id, []).append(verdict)
    for id, verdicts in found.items():
        yield kernels[id], verdicts


def _record(graph: str, kernel: Kernel, call: int, verdicts: list[StepVerdict]) -> KernelPrecision:
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
