"""A call taken apart: both sides in rounds, each step and operation timed where it really runs.

`Collected` keeps the graphs of the recorded compile, with what their guards cost; `profile` runs
the rounds and writes the records (docs/notes/profile.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch._dynamo.utils import counters

from compiler.control.recorder import Recorder
from compiler.measure.engine_graphs import EngineGraph, engine_graphs
from compiler.measure.guard_cost import GuardCosts, guard_costs
from compiler.measure.inductor_graphs import InductorGraph, inductor_graphs
from compiler.measure.kernels import NotAlone
from compiler.measure.leaves import leaves
from compiler.measure.named_graphs import named_graphs
from compiler.measure.origins import Origins
from compiler.measure.peak import peak_bytes
from compiler.measure.probes.clock import HostClock, own_cost
from compiler.measure.probes.eager_probe import EagerProbe, call_cost
from compiler.measure.probes.engine_probe import EngineProbe
from compiler.measure.probes.graph_probe import GraphProbe
from compiler.measure.probes.inductor_probe import InductorProbe
from compiler.measure.saved import saved_bytes
from compiler.trace.records import Engine, Kernel, Progress, Record, Warned
from compiler.trace.records.session import GradMode
from workbench.worker.describe import class_name, message_of
from workbench.worker.inputs import InputSet
from workbench.worker.ourselves import unrecorded
from workbench.worker.profiling_records import Measured, Numbers, records
from workbench.worker.profiling_rounds import Contender, Looked, Rounds, Side, looking, timed
from workbench.worker.runs import Model, RandomState, Twin, grad_mode, original_of, prepare


@dataclass
class Collected:
    """What one engine compiled while it was recorded."""

    of_inductor: list[InductorGraph] = field(default_factory=list)
    of_engine: list[EngineGraph] = field(default_factory=list)
    guards: GuardCosts = field(default_factory=GuardCosts)


@contextmanager
def collecting() -> Iterator[Collected]:
    """Keeps what is compiled inside the block."""
    with ExitStack() as stack:
        yield Collected(
            of_inductor=stack.enter_context(inductor_graphs(keep_arguments=False)),
            of_engine=stack.enter_context(engine_graphs(keep_arguments=False)),
            guards=stack.enter_context(guard_costs()),
        )


@dataclass
class Compiled:
    """What is taken apart."""

    engine: Engine
    model: Model
    eager: Twin
    collected: Collected
    records: Sequence[Record]
    """Of this engine's recording."""
    calls: Sequence[tuple[float, float]] = ()
    """Wall and CPU seconds of each recorded call, compilation included."""


def profile(recorder: Recorder, one: Compiled, inputs: InputSet, numbers: Numbers) -> None:
    """Take a call apart and record it; what cannot be measured is said, and ends nothing."""
    settings = recorder.settings
    call = settings.profiled_call
    try:
        with unrecorded(recorder):
            measured = _measured(recorder, one, inputs, call)
        made = list(records(measured, numbers))
    except BaseException as error:  # whatever the user's model raises on a later run
        reason = f"{class_name(error)}: {message_of(error, 300)}"
        recorder.emit(Warned(message=f"call {call} was not profiled: {reason}", asked=True))
        if not isinstance(error, Exception):
            raise
        return
    for record in made:
        recorder.emit(record)
    if measured.compiled_again:
        recorder.emit(
            Warned(
                message=f"the model was compiled again while it was profiled "
                f"({measured.compiled_again} graphs): its times hold compile time",
                asked=True,
            )
        )


def _measured(recorder: Recorder, one: Compiled, inputs: InputSet, call: int) -> Measured:
    settings = recorder.settings
    device = device_of(one.model, inputs)
    on_device = device.type == "cuda"
    probes, missing = _probes(one)
    eager = EagerProbe(one.eager.model, call, first=0)
    again = EagerProbe(one.eager.model, call)
    bases = _bases(probes)
    cost, eager_cost = own_cost(), call_cost()

    @contextmanager
    def probe_eager() -> Iterator[Looked]:
        clock = HostClock(eager_cost)
        with eager.timing(clock):
            yield Looked(clock)

    @contextmanager
    def probe_eager_twice() -> Iterator[Looked]:
        inner, outer = HostClock(eager_cost), HostClock(eager_cost)
        # the mode that is entered last is called first
        with eager.timing(inner), again.timing(outer):
            yield Looked(inner, outer)

    def probe_compiled() -> AbstractContextManager[Looked]:
        clock = HostClock(cost)
        return looking(
            clock, [p.timing(clock, base) for p, base in zip(probes, bases, strict=True)]
        )

    def told(done: int) -> None:
        words = f"profiling call {call}: round {done + 1} of {settings.rounds}"
        recorder.emit(Progress(stage="run", activity=words))

    mode = settings.grad
    sides = {
        "eager": Contender(
            lambda: prepare(one.eager.model, inputs, mode),
            lambda run: run.pieces(),
            {"probed": probe_eager, "twice": probe_eager_twice},
        ),
        "compiled": Contender(
            lambda: prepare(one.model, inputs, mode),
            lambda run: run.pieces(),
            {"probed": probe_compiled},
        ),
    }
    state = RandomState.now()
    rounds = Rounds(sides, on_device)  # type: ignore[arg-type]
    try:
        run = prepare(one.eager.model, inputs, mode)
        with grad_mode(mode), eager.describing():
            timed(run.pieces(), during=eager.during)
        again.functions = eager.functions
        rounds.warm_up()
        before = counters["stats"]["unique_graphs"]
        rounds.run(settings.rounds, told=told)
        compiled_again = counters["stats"]["unique_graphs"] - before
        measured = Measured(
            call=call,
            engine=one.engine,
            device=str(device),
            probes=probes,
            bases=bases,
            origins=Origins(one.records),
            operations=eager.operations,
            laps=rounds.laps,
            guards=one.collected.guards,
            compiled_again=compiled_again,
            unmeasured="; ".join(filter(None, (missing, eager.differs))),
        )
        _measure_memory(measured, one, inputs, mode)
    finally:
        state.restore()
    return measured


def _measure_memory(measured: Measured, one: Compiled, inputs: InputSet, mode: GradMode) -> None:
    """What a call takes at most, and what its forward keeps for the backward, of both sides."""
    models: dict[Side, Model] = {"eager": one.eager.model, "compiled": one.model}
    for side, model in models.items():
        peaks = [peak_bytes(prepare(model, inputs, mode), measured.device) for _ in range(2)]
        known = [peak for peak in peaks if peak is not None]
        measured.peaks[side] = min(known, default=None)
        if mode == "train":
            run = prepare(model, inputs, mode)
            given = [value for _, value in leaves((run.positional, run.keyword))]
            outputs = run.model(*run.positional, **run.keyword)
            kept = state_of(original_of(model))
            measured.saved[side] = saved_bytes(outputs, [*given, *kept])


def state_of(model: Model) -> list[Any]:
    """Parameters and buffers."""
    if not isinstance(model, torch.nn.Module):
        return []
    return [*model.parameters(), *model.buffers()]


def _probes(one: Compiled) -> tuple[list[GraphProbe], str]:
    """Of all graphs, and why some have none."""
    kernels = [record for record in one.records if isinstance(record, Kernel)]
    named = named_graphs(one.collected.of_inductor, kernels)
    made: list[GraphProbe] = [InductorProbe(id, graph) for id, graph in named.graphs.items()]
    made += [cast(GraphProbe, EngineProbe(graph)) for graph in one.collected.of_engine]
    probes: list[GraphProbe] = []
    reasons: dict[str, None] = {}
    for probe in made:
        try:
            with probe.timing(HostClock(), 0):
                pass
        except NotAlone as error:
            reasons[f"{probe.graph}: {error}"] = None
        else:
            probes.append(probe)
    return probes, "; ".join(reasons)


def _bases(probes: Sequence[GraphProbe]) -> list[int]:
    """Each probe's first key."""
    found, base = [], 0
    for probe in probes:
        found.append(base)
        base += 1 + len(probe.steps)
    return found


def device_of(model: Model, inputs: InputSet) -> torch.device:
    """Where the call runs: a GPU, where any of its tensors is on one."""
    tensors: list[Any] = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    tensors += [value for value in inputs.positional if isinstance(value, torch.Tensor)]
    tensors += [value for value in inputs.keyword.values() if isinstance(value, torch.Tensor)]
    for tensor in tensors:
        if tensor.device.type == "cuda":
            return torch.device(tensor.device)
    return torch.device("cpu")
