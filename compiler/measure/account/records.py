"""The readings of a profile's rounds as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec

from tcw.compiler.measure.account.accounts import compiled_account, eager_account, summed
from tcw.compiler.measure.account.readings import Measured, SideRounds
from tcw.compiler.measure.probes.laps import Side, quiet_rounds
from tcw.compiler.measure.regions import regions
from tcw.compiler.measure.regions.origins import CallOfKernel, Computes, Origins
from tcw.compiler.measure.regions.regions import Grouped, PlacedStep
from tcw.compiler.measure.regions.same_work import LEAST, sameness
from tcw.compiler.measure.rounds.noise import difference, ratio, timed
from tcw.compiler.measure.work.operations import Work
from tcw.compiler.trace.matching import BACKWARD
from tcw.compiler.trace.records import Record
from tcw.compiler.trace.records.profile import (
    Account,
    CallPhase,
    CallProfile,
    CallTimeline,
    CompiledStep,
    EagerOperation,
    Moment,
    Region,
)

NO_WORK = Work()


@dataclass
class IdCounts:
    """Counts ids through a trace."""

    operations: int = 0
    steps: int = 0
    regions: int = 0
    ceilings: bool = False
    """Whether the machine's ceilings are in the trace."""


def records(measured: Measured, numbers: IdCounts) -> Iterator[Record]:
    """Operations, steps, regions, accounts, timelines and then the head. Only the head where the
    parts of a call say nothing about the whole: on a busy machine, and where they come to far more
    than the call."""
    rounds = quiet_rounds(measured.laps)
    eager, compiled = SideRounds(rounds["eager"]), measured.compiled_rounds(rounds["compiled"])
    exceeded: float | None = None
    if not measured.contended:
        parts = list(_parts(measured, eager, compiled, numbers))
        exceeded = _exceeded(measured, [part for part in parts if isinstance(part, Account)])
        if exceeded is None:
            yield from parts
    measured.whole_only = measured.contended or exceeded is not None
    yield msgspec.structs.replace(_head(measured, eager, compiled), exceeded=exceeded)


EXCESS = 2.0
"""Parts that come to more than this many times the whole call say nothing about it. Probes and
noise make up less; kernels on several streams of a GPU may run at the same time."""


def _exceeded(measured: Measured, accounts: Sequence[Account]) -> float | None:
    """How many times the whole call its parts come to, on the worse side, if that is too much."""
    if measured.device.startswith("cuda"):
        return None
    shares = [
        1 - account.remainder / account.measured.median
        for account in accounts
        if not account.phase and account.measured.median > 0
    ]
    most = max(shares, default=0.0)
    return most if most > EXCESS else None


def _parts(
    measured: Measured, eager: SideRounds, compiled: SideRounds, numbers: IdCounts
) -> Iterator[Record]:
    operations = _operations(measured, eager, numbers)
    yield from operations.values()
    steps = _steps(measured, compiled, numbers)
    yield from (placed.step for placed in steps.values())
    yield from _regions(measured, eager, compiled, operations, steps, numbers)
    whole: tuple[CallPhase, ...] = ("",)
    for phase in dict.fromkeys((*whole, *eager.phases)):
        yield eager_account(measured, eager, operations, phase)
        yield compiled_account(measured, compiled, steps, phase)
    yield _timeline(measured.call, "eager", eager, {k: o.id for k, o in operations.items()})
    yield _timeline(measured.call, "compiled", compiled, {k: p.step.id for k, p in steps.items()})


def step_records(measured: Measured, label: str, numbers: IdCounts) -> Iterator[Record]:
    """Of an optimizer's step: its operations, its compiled steps, one region of both, the accounts.
    Its graphs are not part of the recording, so it is unknown which operation a kernel carries
    out; a fused optimizer carries out all of them."""
    rounds = quiet_rounds(measured.laps)
    eager, compiled = SideRounds(rounds["eager"]), SideRounds(rounds["compiled"])
    operations = _operations(measured, eager, numbers)
    yield from operations.values()
    steps = _steps(measured, compiled, numbers)
    yield from (placed.step for placed in steps.values())
    count = min(eager.rounds, compiled.rounds)
    before = summed((eager.seconds[key] for key in operations if key in eager.seconds), count)
    after = summed((compiled.seconds[key] for key in steps), count)
    gained, noise = difference(before, after, independent=True)
    yield Region(
        id=f"r{numbers.regions}",
        call=measured.call,
        label=label,
        phase="step",
        steps=tuple(placed.step.id for placed in steps.values()),
        operations=tuple(operation.id for operation in operations.values()),
        eager=timed(before),
        compiled=timed(after) if steps else None,
        difference=gained,
        noise=noise,
    )
    numbers.regions += 1
    yield eager_account(measured, eager, operations, "step")
    yield compiled_account(measured, compiled, steps, "step")


def _operations(
    measured: Measured, side: SideRounds, numbers: IdCounts
) -> dict[int, EagerOperation]:
    """By key, with ids of this trace and their times."""
    first = numbers.operations
    names = {operation.id: f"e{first + key}" for key, operation in enumerate(measured.operations)}
    numbers.operations += len(names)
    return {
        key: msgspec.structs.replace(
            operation, id=names[operation.id], of=names.get(operation.of, ""), **times(side, key)
        )
        for key, operation in enumerate(measured.operations)
    }


def times(side: SideRounds, key: int) -> dict[str, Any]:
    """The fields of an operation or a step that its side's clock provides."""
    if key not in side.seconds:
        return {}
    found: dict[str, Any] = {"time": timed(side.seconds[key])}
    if key in side.host:
        seen = side.seen.get(key, ())
        found["host"] = timed(side.host[key])
        found["launches"] = sum(reading.launches for reading in seen)
        found["kernels"] = tuple(name for reading in seen for name in reading.kernels)
    return found


def _steps(measured: Measured, side: SideRounds, numbers: IdCounts) -> dict[int, PlacedStep]:
    """By key, in execution order; without those that did not run in this call."""
    found = [*_graph_steps(measured, side), *_between(measured, side)]
    found.sort(key=lambda one: side.first.get(one[0], 0))
    calls = [call for _, step, call in found if step.kind != "eager"]
    computed = iter(measured.origins.computed(calls))
    placed: dict[int, PlacedStep] = {}
    for key, step, call in found:
        work = measured.origins.work(call) if call is not None else NO_WORK
        named = msgspec.structs.replace(
            step,
            id=f"s{numbers.steps}",
            kernel=call.kernel.id if call is not None else "",
            read_bytes=work.read_bytes,
            write_bytes=work.write_bytes,
            flops=work.flops,
        )
        numbers.steps += 1
        placed[key] = PlacedStep(named, Computes() if step.kind == "eager" else next(computed))
    return placed


_Found = tuple[int, CompiledStep, CallOfKernel | None]


def _graph_steps(measured: Measured, side: SideRounds) -> Iterator[_Found]:
    training = "backward" in side.phases
    for probe, base in zip(measured.probes, measured.bases, strict=True):
        calls = measured.origins.calls(probe.graph, probe.steps)
        phase = measured.phase
        if training:
            phase = "backward" if probe.graph.endswith(BACKWARD) else "forward"
        for graph_step in probe.steps:
            key = base + 1 + graph_step.index
            if key not in side.seconds:
                continue
            step = CompiledStep(
                id="",
                call=measured.call,
                kind=graph_step.kind,
                name=graph_step.name,
                phase=phase,
                graph=probe.graph,
                index=graph_step.index,
                part="optimizer" if phase == "step" else "model",
            )
            found = {"launches": len(side.seen[key]), **times(side, key)}
            yield key, msgspec.structs.replace(step, **found), calls.get(graph_step.index)


def _between(measured: Measured, side: SideRounds) -> Iterator[_Found]:
    training = "backward" in side.phases
    for key, rounds in enumerate(side.between, measured.end):
        run = rounds.run
        step = CompiledStep(
            id="",
            call=measured.call,
            kind="eager",
            name=run.name,
            phase=run.phase if training else "",
            part=run.part,
            launches=run.launches,
            kernels=run.kernels,
            time=timed(side.seconds[key]),
            host=timed(side.host[key]) if key in side.host else None,
        )
        yield key, step, None


def _regions(
    measured: Measured,
    eager: SideRounds,
    compiled: SideRounds,
    operations: dict[int, EagerOperation],
    steps: dict[int, PlacedStep],
    numbers: IdCounts,
) -> Iterator[Region]:
    graphs = (placed.step.graph for placed in steps.values() if placed.step.graph)
    groups = regions.regions(
        measured.origins,
        list(steps.values()),
        list(operations.values()),
        dict.fromkeys(graph.rpartition("/")[0] for graph in graphs),
        measured.canonical,
    )
    eager_of = {operation.id: eager.seconds.get(key, []) for key, operation in operations.items()}
    compiled_of = {placed.step.id: compiled.seconds[key] for key, placed in steps.items()}
    rounds = min(eager.rounds, compiled.rounds)
    for group in groups:
        before = summed((eager_of[operation.id] for operation in group.operations), rounds)
        after = summed((compiled_of[placed.step.id] for placed in group.steps), rounds)
        gained, noise = difference(before, after, independent=True)
        same = sameness(measured.origins, group)
        if same:
            noise = max(noise, LEAST * median(before))
        yield Region(
            id=f"r{numbers.regions}",
            call=measured.call,
            label=regions.label(measured.origins, group),
            phase=_phase(group),
            steps=tuple(placed.step.id for placed in group.steps),
            operations=tuple(operation.id for operation in group.operations),
            locations=regions.locations(group),
            modules=_modules(measured.origins, group),
            eager=timed(before) if any(operation.time for operation in group.operations) else None,
            compiled=timed(after) if any(step.step.time for step in group.steps) else None,
            difference=gained,
            noise=noise,
            same=same,
        )
        numbers.regions += 1


def _phase(group: Grouped) -> CallPhase:
    return group.steps[0].step.phase if group.steps else group.operations[0].phase


def _modules(origins: Origins, group: Grouped) -> tuple[str, ...]:
    found = dict.fromkeys(operation.module for operation in group.operations)
    for placed in group.steps:
        for ref in placed.counted:
            found[origins.nodes[ref].module] = None
    return tuple(sorted(name for name in found if name))


def _timeline(call: int, side: Side, found: SideRounds, names: dict[int, str]) -> CallTimeline:
    lap = found.laps["probed"][found.typical()]
    moments = [
        Moment(
            of=names[reading.key],
            start=max(0.0, (reading.start - lap.start) / 1e9),
            seconds=reading.ns / 1e9,
        )
        for reading in lap.readings
        if reading.key in names
    ]
    return CallTimeline(call=call, side=side, seconds=lap.seconds, moments=tuple(moments))


def _head(measured: Measured, eager: SideRounds, compiled: SideRounds) -> CallProfile:
    before, after = eager.plain(""), compiled.plain("")
    speedup, noise = ratio(before, after, independent=not measured.contended)
    phases: Sequence[str] = eager.phases
    return CallProfile(
        call=measured.call,
        what=" + ".join(phases) if any(phases) else "forward",
        device=measured.device,
        eager=timed(before),
        compiled=timed(after),
        speedup=speedup,
        noise=noise,
        rounds=len(before),
        contended=measured.contended,
        clock="device" if measured.device.startswith("cuda") else "host",
        compiled_again=measured.compiled_again,
        eager_peak_bytes=measured.peaks.get("eager"),
        compiled_peak_bytes=measured.peaks.get("compiled"),
        eager_saved_bytes=measured.saved.get("eager"),
        compiled_saved_bytes=measured.saved.get("compiled"),
        unmeasured="; ".join(dict.fromkeys(reason for _, reason in measured.unmeasured)),
        unmeasured_sides=tuple(dict.fromkeys(side for side, _ in measured.unmeasured)),
    )
