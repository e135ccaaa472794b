"""A call taken apart: both sides in rounds, each step and operation timed where it really runs.

`profile` runs the rounds and writes the records (docs/notes/profile.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch._dynamo.utils import counters

from tcw.compiler.control.hooks import Missing
from tcw.compiler.measure.account.readings import Measured
from tcw.compiler.measure.account.records import IdCounts, records
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.calls.runs import (
    Model,
    PreparedRun,
    RandomState,
    device_of,
    original_of,
    prepare,
    prepared,
)
from tcw.compiler.measure.compiled.collected import RecordedModel
from tcw.compiler.measure.compiled.named_graphs import named_graphs
from tcw.compiler.measure.host import Host, reason_of
from tcw.compiler.measure.memory.peak import least_peak_bytes
from tcw.compiler.measure.memory.saved import saved_bytes
from tcw.compiler.measure.probes import device_clock, eager_probe
from tcw.compiler.measure.probes.call_rounds import CallRounds, CallSide, plan_of
from tcw.compiler.measure.probes.code_probe import CodeProbe
from tcw.compiler.measure.probes.engine_probe import engine_probe
from tcw.compiler.measure.probes.inductor_probe import InductorProbe
from tcw.compiler.measure.probes.laps import Side, subtract_profiler
from tcw.compiler.measure.probes.sides import CompiledSide, EagerSide
from tcw.compiler.measure.regions.origins import Origins
from tcw.compiler.measure.rounds import speed
from tcw.compiler.measure.rounds.allocator import freed_memory_is_kept
from tcw.compiler.measure.rounds.team import Team
from tcw.compiler.measure.work.ceilings import ceilings
from tcw.compiler.trace.records import Speed, Warned
from tcw.compiler.trace.records.profile import Unmeasured
from tcw.compiler.trace.records.session import GradMode


def profile(
    host: Host, model: RecordedModel, inputs: InputSet, numbers: IdCounts
) -> Measured | None:
    """Take a call apart and record it. What cannot be measured is recorded with the reason; nothing
    fails."""
    settings = host.settings
    call = settings.profiled_call
    try:
        for needed in (eager_probe.HOOK, device_clock.HOOK):
            if reason := needed.missing():
                raise Missing(reason)
        with host.unrecorded():
            measured = _measured(host, model, inputs, call)
        made = list(records(measured, numbers))
    except BaseException as error:  # anything that the user's model raises on a later run
        reason = reason_of(error)
        host.emit(Warned(message=f"call {call} was not profiled: {reason}", asked=True))
        if not isinstance(error, Exception):
            raise
        return None
    if not numbers.ceilings and not measured.contended:
        numbers.ceilings = True
        _emit_ceilings(host, measured.device)
    for record in made:
        host.emit(record)
    return measured


def speed_of(measured: Measured, model: RecordedModel, inputs: InputSet, mode: GradMode) -> Speed:
    """The whole call, eager against compiled, from the rounds of the profile."""
    sides: dict[Side, Callable[[], PreparedRun]] = {
        "eager": prepared(model.eager.model, inputs, mode),
        "compiled": prepared(model.model, inputs, mode),
    }
    plain = {side: [lap.running() for lap in measured.laps[side]["plain"]] for side in sides}
    running = speed.cpu_of(sides["compiled"])
    return speed.summarise(
        [measured.call],
        [plain["eager"]],
        [plain["compiled"]],
        [(wall, 0) for wall, _ in model.calls],
        max(0.0, sum(cpu for _, cpu in model.calls) - running * len(model.calls)),
        "forward + backward" if mode == "train" else "forward",
        measured.device,
        (measured.peaks.get("eager"), measured.peaks.get("compiled")),
    )


def _measured(host: Host, model: RecordedModel, inputs: InputSet, call: int) -> Measured:
    settings = host.settings
    mode = settings.grad
    device = device_of(model.eager.model, [inputs])
    on_device = device == "cuda"
    eager = EagerSide(model.eager.model, call, on_device)
    probes, lost = _graph_probes(model)
    compiled = CompiledSide(probes, on_device, model.collected.of_engine)
    run_eager = host.with_hooks(prepared(model.eager.model, inputs, mode), records=False)
    run_compiled = host.with_hooks(prepared(model.model, inputs, mode), records=True)
    state = RandomState.now()
    kept = ExitStack()
    try:
        eager.describe(run_eager())
        rounds = CallRounds(
            {
                "eager": CallSide(run_eager, {"probed": eager.probing}),
                "compiled": CallSide(run_compiled, compiled.probes()),
            },
            kept.enter_context(Team(1 if on_device else torch.get_num_threads())),
            on_device,
        )
        plan = plan_of(settings.rounds)
        progress = _progress(host, f"profiling call {call}", settings.rounds)
        kept.enter_context(freed_memory_is_kept())
        if on_device:
            rounds.plain_first(plan, progress)
        last = rounds.warm_up()
        eager.check(last["eager", "probed"])
        if "between" in rounds.laps["compiled"] and not last["compiled", "between"].eager:
            rounds.leave_out_between()
        before = counters["stats"]["unique_graphs"]
        rounds.run(plan, progress)
        kept.close()
        host.recorder.quiet = True
        if not on_device:
            subtract_profiler(rounds.laps)
        if not eager.by_profiler:
            rounds.forget_library_calls()
        eager.read(rounds.laps["eager"]["probed"])
        measured = Measured(
            call=call,
            device=device,
            probes=compiled.graphs,
            bases=compiled.bases,
            end=compiled.end,
            origins=Origins(model.records),
            canonical=eager.probe.paths.canonical,
            operations=eager.probe.operations,
            laps=rounds.laps,
            contended=rounds.team.contended,
            guards=model.collected.guards,
            compiled_again=model.unsettled + counters["stats"]["unique_graphs"] - before,
            unmeasured=_unmeasured(
                eager.probe.differs, (lost, compiled.missing), model.collected.guards.missing
            ),
        )
        _measure_memory(measured, model, inputs, mode)
    finally:
        kept.close()
        state.restore()
    return measured


def _unmeasured(differs: str, missing: Sequence[str], guards: str) -> list[tuple[Unmeasured, str]]:
    """`differs`: how an eager call deviated; `missing`: of the compiled graphs."""
    found: list[tuple[Unmeasured, str]] = []
    if differs:
        found.append(("eager", f"eager calls are not all the same: {differs}"))
    found += [("compiled", one) for one in missing if one]
    if guards:
        found.append(("guards", f"guards: {guards}"))
    return found


def _emit_ceilings(host: Host, device: str) -> None:
    host.begins("measuring what this machine can do at most")
    try:
        with host.unrecorded():
            found = ceilings("cuda" if device.startswith("cuda") else "cpu")
        reason = "the machine is busy"
    except (RuntimeError, OSError, MemoryError) as error:
        found, reason = None, reason_of(error)
    unknown = Warned(message=f"the machine's ceilings were not measured: {reason}")
    host.emit(found if found is not None else unknown)


def _progress(host: Host, doing: str, rounds: int) -> Callable[[int], None]:
    """Reports the current round, at most once a second."""
    said = [-1.0]

    def progress(done: int) -> None:
        now = time.monotonic()
        if now - said[0] >= 1:
            said[0] = now
            of = f" of {rounds}" if done < rounds else ", as some were disturbed"
            words = f"{doing}: round {done + 1}{of}"
            host.begins(words)

    return progress


def _graph_probes(model: RecordedModel) -> tuple[list[CodeProbe], str]:
    """The probes of all graphs that were compiled and recorded; and the graphs that could not be
    found."""
    named = named_graphs(model.collected.of_inductor, model.records)
    found: list[CodeProbe] = [InductorProbe(id, graph) for id, graph in named.graphs.items()]
    collected = model.collected
    found += map(engine_probe, collected.of_engine)
    found += map(engine_probe, collected.left_to_aten)
    have = {probe.graph for probe in found}
    lost = [name for name in named.lost if name not in have]
    return found, f"the code of {', '.join(lost)} was not found again" if lost else ""


def _measure_memory(
    measured: Measured, recorded_model: RecordedModel, inputs: InputSet, mode: GradMode
) -> None:
    """The peak memory of a call, and what its forward keeps for the backward, of both sides."""
    models: dict[Side, Model] = {
        "eager": recorded_model.eager.model,
        "compiled": recorded_model.model,
    }
    for side, model in models.items():
        measured.peaks[side] = least_peak_bytes(
            prepared(model, inputs, mode), measured.device, graphs=side == "compiled"
        )
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
