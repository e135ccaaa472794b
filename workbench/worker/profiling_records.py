"""What the rounds of a profile read, as records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from compiler.measure import regions
from compiler.measure.account import account, difference, less, line, summed, timed
from compiler.measure.guard_cost import GuardCosts
from compiler.measure.origins import Call, Origins
from compiler.measure.probes.clock import Reading
from compiler.measure.probes.graph_probe import GraphProbe
from compiler.measure.regions import Grouped, Placed
from compiler.measure.speed import spread
from compiler.measure.work import Work
from compiler.trace.records import Engine, Record
from compiler.trace.records.profile import (
    Account,
    AccountLine,
    CallPhase,
    CallProfile,
    CallTimeline,
    CompiledStep,
    EagerOperation,
    Moment,
    Region,
)
from workbench.worker.profiling_rounds import Laps, Side, Way, quiet_laps, quiet_rounds

BACKWARD = "/backward"
NO_WORK = Work()


@dataclass
class Numbers:
    """Counts ids through a trace."""

    operations: int = 0
    steps: int = 0
    regions: int = 0


@dataclass
class Measured:
    """What came out of the rounds of one call."""

    call: int
    engine: Engine
    device: str
    probes: Sequence[GraphProbe]
    bases: Sequence[int]
    """The first key of each probe: that of its whole graph; its steps follow."""
    origins: Origins
    operations: Sequence[EagerOperation]
    """By key of their readings."""
    laps: dict[Side, Laps]
    guards: GuardCosts
    compiled_again: int = 0
    unmeasured: str = ""
    peaks: dict[Side, int | None] = field(default_factory=dict)
    saved: dict[Side, int] = field(default_factory=dict)


class _Side:
    """The readings of one side, by key and round."""

    def __init__(self, laps: Laps) -> None:
        self.laps = laps
        self.rounds = len(laps["probed"])
        self.seconds = _by_key(lap.readings for lap in laps["probed"])
        """Key -> seconds of each round."""
        self.runs: dict[int, int] = {}
        self.first: dict[int, int] = {}
        """When it first started, in the first round: what runs first comes first."""
        for reading in laps["probed"][0].readings:
            self.runs[reading.key] = self.runs.get(reading.key, 0) + 1
            self.first.setdefault(reading.key, reading.start)

    @property
    def phases(self) -> list[CallPhase]:
        """In order; one ("") outside of training."""
        return list(self.laps["plain"][0].phases)

    def phase(self, phase: CallPhase, way: Way) -> list[float]:
        """Seconds of a phase, or of the whole call ("")."""
        return [lap.phases.get(phase, lap.seconds) for lap in self.laps[way]]

    def typical(self) -> int:
        """The round whose time is the median."""
        order = sorted(range(self.rounds), key=lambda i: self.laps["probed"][i].seconds)
        return order[len(order) // 2]


def _by_key(rounds: Iterable[Sequence[Reading]]) -> dict[int, list[float]]:
    """Seconds of each round by key; 0 where a round has none."""
    found: dict[int, list[float]] = {}
    every = list(rounds)
    for number, readings in enumerate(every):
        for one in readings:
            found.setdefault(one.key, [0.0] * len(every))[number] += one.ns / 1e9
    return found


def records(measured: Measured, numbers: Numbers) -> Iterator[Record]:
    """Operations, steps, regions, accounts, timelines and then the head."""
    rounds = quiet_rounds(measured.laps)
    eager, compiled = _Side(rounds["eager"]), _Side(rounds["compiled"])
    operations = _operations(measured, eager, numbers)
    yield from operations.values()
    steps = _steps(measured, compiled, numbers)
    yield from (placed.step for placed in steps.values())
    yield from _regions(measured, eager, compiled, operations, steps, numbers)
    phases = eager.phases
    alone, other = (_Side(quiet_laps(measured.laps[side])) for side in ("eager", "compiled"))
    whole: tuple[CallPhase, ...] = ("",)
    for phase in dict.fromkeys((*whole, *phases)):
        yield _eager_account(measured, alone, operations, phase)
        yield _compiled_account(measured, other, steps, phase)
    yield _timeline(measured.call, "eager", eager, {k: o.id for k, o in operations.items()})
    yield _timeline(measured.call, "compiled", compiled, {k: p.step.id for k, p in steps.items()})
    yield _head(measured, eager, compiled, phases)


def _operations(measured: Measured, side: _Side, numbers: Numbers) -> dict[int, EagerOperation]:
    """By key, with ids of this trace and their times."""
    first = numbers.operations
    names = {one.id: f"e{first + key}" for key, one in enumerate(measured.operations)}
    numbers.operations += len(names)
    return {
        key: msgspec.structs.replace(
            one,
            id=names[one.id],
            of=names.get(one.of, ""),
            time=timed(side.seconds[key]) if key in side.seconds else None,
        )
        for key, one in enumerate(measured.operations)
    }


def _steps(measured: Measured, side: _Side, numbers: Numbers) -> dict[int, Placed]:
    """By key, in the order in which they ran; those that did not run in this call left out."""
    training = "backward" in side.phases
    found: list[tuple[int, CompiledStep, Call | None]] = []
    for probe, base in zip(measured.probes, measured.bases, strict=True):
        calls = measured.origins.calls(probe.graph, probe.steps)
        for one in probe.steps:
            key = base + 1 + one.index
            if key not in side.seconds:
                continue
            phase: CallPhase = ""
            if training:
                phase = "backward" if probe.graph.endswith(BACKWARD) else "forward"
            step = CompiledStep(
                id="",
                call=measured.call,
                kind=one.kind,
                name=one.name,
                phase=phase,
                graph=probe.graph,
                index=one.index,
                launches=side.runs[key],
                time=timed(side.seconds[key]),
            )
            found.append((key, step, calls.get(one.index)))
    found.sort(key=lambda one: side.first.get(one[0], 0))
    computed = measured.origins.computed(call for _, _, call in found)
    placed: dict[int, Placed] = {}
    for (key, step, call), computes in zip(found, computed, strict=True):
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
        placed[key] = Placed(named, computes)
    return placed


def _regions(
    measured: Measured,
    eager: _Side,
    compiled: _Side,
    operations: dict[int, EagerOperation],
    steps: dict[int, Placed],
    numbers: Numbers,
) -> Iterator[Region]:
    compile_ids = dict.fromkeys(placed.step.graph.rpartition("/")[0] for placed in steps.values())
    groups = regions.regions(
        measured.origins, list(steps.values()), list(operations.values()), compile_ids
    )
    eager_of = {one.id: eager.seconds.get(key, []) for key, one in operations.items()}
    compiled_of = {placed.step.id: compiled.seconds[key] for key, placed in steps.items()}
    rounds = min(eager.rounds, compiled.rounds)
    for group in groups:
        before = summed((eager_of[one.id] for one in group.operations), rounds)
        after = summed((compiled_of[placed.step.id] for placed in group.steps), rounds)
        gained, noise = difference(before, after)
        yield Region(
            id=f"r{numbers.regions}",
            call=measured.call,
            label=regions.label(measured.origins, group),
            phase=_phase(group),
            steps=tuple(placed.step.id for placed in group.steps),
            operations=tuple(one.id for one in group.operations),
            locations=regions.locations(group),
            modules=_modules(measured.origins, group),
            eager=timed(before) if group.operations else None,
            compiled=timed(after) if group.steps else None,
            difference=gained,
            noise=noise,
        )
        numbers.regions += 1


def _phase(group: Grouped) -> CallPhase:
    if group.steps:
        return group.steps[0].step.phase
    return group.operations[0].phase


def _modules(origins: Origins, group: Grouped) -> tuple[str, ...]:
    found = dict.fromkeys(one.module for one in group.operations)
    for placed in group.steps:
        for ref in placed.counted:
            found[origins.nodes[ref].module] = None
    return tuple(sorted(name for name in found if name))


def _eager_account(
    measured: Measured, side: _Side, operations: dict[int, EagerOperation], phase: CallPhase
) -> Account:
    wanted = {key: one for key, one in operations.items() if phase in ("", one.phase)}
    running = summed((side.seconds.get(key, []) for key in wanted), side.rounds)
    # what is around the operations, from runs with two probes: the outer reads what one costs
    twice = side.laps["twice"]
    inner, outer = (
        _by_key(one) for one in ([lap.readings for lap in twice], [lap.outer for lap in twice])
    )
    ours, theirs = (
        summed((found.get(key, []) for key in wanted), len(twice)) for found in (inner, outer)
    )
    probing = [2 * max(0.0, b - a) for a, b in zip(ours, theirs, strict=True)]
    rest = less(side.phase(phase, "twice"), ours, probing)
    launches = sum(one.launches > 0 for one in wanted.values())
    lines = [
        line("operations", running, f"{launches} operations, {len(wanted) - launches} views"),
        line("dispatch", rest, "Python, modules, autograd"),
    ]
    return account("eager", measured.call, phase, side.phase(phase, "plain"), lines)


def _compiled_account(
    measured: Measured, side: _Side, steps: dict[int, Placed], phase: CallPhase
) -> Account:
    wanted = {key: p.step for key, p in steps.items() if phase in ("", p.step.phase)}
    graphs = {
        base: probe
        for probe, base in zip(measured.probes, measured.bases, strict=True)
        if base in side.seconds and _in_phase(probe.graph, phase)
    }
    whole = summed((side.seconds[base] for base in graphs), side.rounds)
    sums: dict[str, list[float]] = {}
    counts: dict[str, int] = defaultdict(int)
    for kind in ("kernel", "aten"):
        keys = [key for key, step in wanted.items() if step.kind == kind]
        sums[kind] = summed((side.seconds[key] for key in keys), side.rounds)
        counts[kind] = len(keys)
    wrapper = less(whole, *sums.values())
    guards, checked = _guards(measured, side, phase)
    guarding = [guards] * side.rounds
    rest = less(side.phase(phase, "probed"), whole, guarding)
    lines: list[AccountLine] = [
        line("kernels", sums["kernel"], _count(counts["kernel"], "kernel")),
        line("aten", sums["aten"], _count(counts["aten"], "call")),
        line("wrapper", wrapper, f"of {_count(len(graphs), 'graph')}"),
        line("guards", guarding, checked),
        line("dispatch", rest, "Dynamo's and AOTAutograd's wrappers, autograd"),
    ]
    return account("compiled", measured.call, phase, side.phase(phase, "plain"), lines)


def _guards(measured: Measured, side: _Side, phase: CallPhase) -> tuple[float, str]:
    """Seconds of all guards that the call checks: those of each frame whose graph ran, as often
    as it ran."""
    if phase == "backward":
        return 0.0, ""
    seconds, frames = 0.0, 0
    for probe, base in zip(measured.probes, measured.bases, strict=True):
        name = probe.graph.rpartition("/")[0]
        cost = measured.guards.found.get(name)
        if cost is None or base not in side.runs or probe.graph.endswith(BACKWARD):
            continue
        seconds += cost.median * side.runs[base]
        frames += side.runs[base]
    return seconds, f"of {_count(frames, 'frame')}" if frames else ""


def _in_phase(graph: str, phase: CallPhase) -> bool:
    return not phase or (phase == "backward") == graph.endswith(BACKWARD)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _timeline(call: int, side: Side, found: _Side, names: dict[int, str]) -> CallTimeline:
    lap = found.laps["probed"][found.typical()]
    return CallTimeline(
        call=call,
        side=side,
        seconds=lap.seconds,
        moments=tuple(_moment(names[r.key], r, lap.start) for r in lap.readings if r.key in names),
    )


def _moment(name: str, reading: Reading, start: int) -> Moment:
    return Moment(of=name, start=max(0.0, (reading.start - start) / 1e9), seconds=reading.ns / 1e9)


def _head(
    measured: Measured, eager: _Side, compiled: _Side, phases: Sequence[CallPhase]
) -> CallProfile:
    before, after = eager.phase("", "plain"), compiled.phase("", "plain")
    ratios = [a / b for a, b in zip(before, after, strict=True)]
    speedup = median(ratios)
    return CallProfile(
        call=measured.call,
        what=" + ".join(phases) if any(phases) else "forward",
        device=measured.device,
        eager=timed(before),
        compiled=timed(after),
        speedup=speedup,
        noise=max(3 * spread(ratios) / speedup, 0.01),
        rounds=len(ratios),
        compiled_again=measured.compiled_again,
        unmeasured=measured.unmeasured,
        eager_peak_bytes=measured.peaks.get("eager"),
        compiled_peak_bytes=measured.peaks.get("compiled"),
        eager_saved_bytes=measured.saved.get("eager"),
        compiled_saved_bytes=measured.saved.get("compiled"),
    )
