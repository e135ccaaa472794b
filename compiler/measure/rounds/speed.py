"""Eager against compiled for the whole model, side by side in one process.

Both run in the same rounds, with the other engine's result if two engines are compared. The times
are summarised by medians and median absolute deviations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

import torch
from msgspec.structs import replace
from torch._dynamo.utils import counters

from tcw.compiler.measure.calls.inputs import InputSet, described_arguments
from tcw.compiler.measure.calls.runs import CompiledModel, Model, Prepare, device_of, prepared
from tcw.compiler.measure.host import Host, reason_of
from tcw.compiler.measure.memory.peak import least_peak_bytes
from tcw.compiler.measure.rounds.noise import mean_round, ratio, spread
from tcw.compiler.measure.rounds.rounds import RoundsPlan
from tcw.compiler.measure.rounds.whole_runs import seconds_in_rounds
from tcw.compiler.trace.records import EnginePart, EngineSpeed, SetSpeed, Speed, Warned

PLAN = RoundsPlan(rounds=60, seconds=3.0, least=10, patience=30.0)
SHORT = 2e-3
"""Seconds of a compiled call below which its time outside graphs may matter."""
OutsideGraphs = Callable[[Sequence[Prepare]], tuple[float, float] | None]
"""Returns a call's seconds outside its compiled graphs, and all of its seconds."""
_SETS = 8
"""The most input sets, with distinct descriptions, that are timed."""


def time_engines(
    host: Host,
    eager: Model,
    engines: Sequence[CompiledModel],
    sets: list[InputSet],
    outside_graphs: OutsideGraphs | None = None,
) -> None:
    """Time eager against the results of one engine, or two, and record the times. For one
    engine `outside_graphs` also times what a short call does outside them."""
    mode = host.settings.grad
    calls: list[int] = []
    contenders: list[list[Prepare]] = []
    """The runs of each input set: eager's, then each engine's."""
    known: dict[object, int] = {}
    stands_for: list[int] = []
    for number, inputs in enumerate(sets, 1):
        # positions serve as names: it only matters whether two sets are alike
        named = {str(index): value for index, value in enumerate(inputs.positional)}
        key = described_arguments({**named, **inputs.keyword})
        if key not in known and len(contenders) < _SETS:
            known[key] = len(contenders)
            calls.append(number)
            models = (eager, *(engine.model for engine in engines))
            contenders.append([prepared(model, inputs, mode) for model in models])
        stands_for.append(known.get(key, len(contenders) - 1))
    names = " against ".join(model.engine for model in engines) if len(engines) > 1 else "compiled"
    host.begins(f"timing eager against {names}")
    graphs = [0]

    def warmed() -> None:
        graphs[0] = counters["stats"]["unique_graphs"]

    if len(engines) == 1:  # the compiles of two could not be told apart
        for runs in contenders:
            runs[:] = [host.with_hooks(run, records=place > 0) for place, run in enumerate(runs)]
    device = device_of(eager, sets)
    peaks: list[int | None] = [None] * (1 + len(engines))
    alone: tuple[float, float] | None = None
    try:
        with host.unrecorded():
            times = seconds_in_rounds(contenders, PLAN, warmed)
            again = counters["stats"]["unique_graphs"] - graphs[0]
            host.recorder.quiet = True
            running = [
                [cpu_of(runs[place]) for runs in contenders] for place in range(1, 1 + len(engines))
            ]
            compiled = [runs[1] for runs in contenders]
            longest = max(median(sides[1]) for sides in times)
            if outside_graphs is not None and device == "cpu" and longest < SHORT:
                alone = outside_graphs(compiled)
            if host.settings.memory:
                peaks = [_most(contenders, place, device) for place in range(1 + len(engines))]
    except BaseException as error:  # anything that the user's model raises on a later run
        why = f"a repeated call raised {reason_of(error)}"
        if type(error).__name__ == "FailOnRecompileLimitHit":
            why = "the repeated calls recompile until torch's recompile limit"
        host.emit(Warned(message=f"speed not measured: {why}", code="not timed"))
        return
    what = "forward + backward" if mode == "train" else "forward"
    eager_times, *engine_times = zip(*times, strict=True)
    for place, (engine, cpu_of_sets) in enumerate(zip(engines, running, strict=True)):
        if len(engines) > 1:
            host.emit(EnginePart(engine=engine.engine))
        first = [(wall, index) for (wall, _), index in zip(engine.calls, stands_for, strict=False)]
        cpu = sum(spent for _, spent in engine.calls)
        cpu -= sum(cpu_of_sets[index] for index in stands_for[: len(engine.calls)])
        both = peaks[0], peaks[1 + place]
        speed = summarise(
            calls, eager_times, engine_times[place], first, max(0.0, cpu), what, device, both,
            again,
        )  # fmt: skip
        if alone is not None:
            speed = replace(speed, outside_ms=alone[0] * 1e3, alone_ms=alone[1] * 1e3)
        host.emit(speed)
    if len(engines) > 1:
        one, other = engines
        host.emit(compare(engine_times[0], engine_times[1], one.engine, other.engine))


def _most(contenders: Sequence[Sequence[Prepare]], place: int, device: str) -> int | None:
    """The largest peak among the calls of one side."""
    peaks = [least_peak_bytes(runs[place], device, graphs=place > 0) for runs in contenders]
    return max((peak for peak in peaks if peak is not None), default=None)


def cpu_of(prepare: Prepare) -> float:
    """CPU seconds of this process for one warm run."""
    run = prepare()
    start = time.process_time()
    run()
    return time.process_time() - start


def summarise(
    calls: Sequence[int],
    eager_sets: Sequence[Sequence[float]],
    compiled_sets: Sequence[Sequence[float]],
    first_calls: Sequence[tuple[float, int]],
    cpu_seconds: float | None,
    what: str,
    device: str = "",
    peaks: tuple[int | None, int | None] = (None, None),
    compiled_again: int = 0,
) -> Speed:
    """The record. A round's time is the mean over its input sets, so times are per call.

    `calls` has the number of each input set's call; `eager_sets` and `compiled_sets` its seconds,
    one per round. `first_calls` has, for each recorded call, its wall seconds and the index of the
    input set that stands for it. `cpu_seconds`: the CPU seconds that these calls took beyond
    running. `peaks`: bytes of eager and compiled. `compiled_again`: graphs compiled during the
    rounds.
    """
    eager, compiled = mean_round(eager_sets), mean_round(compiled_sets)
    speedup, noise = ratio(eager, compiled)
    running = [median(seconds) for seconds in compiled_sets]
    beyond = sum(max(0.0, seconds - running[index]) for seconds, index in first_calls)
    return Speed(
        eager_ms=median(eager) * 1e3,
        compiled_ms=median(compiled) * 1e3,
        eager_mad_ms=spread(eager) * 1e3,
        compiled_mad_ms=spread(compiled) * 1e3,
        speedup=speedup,
        noise=noise,
        pairs=len(eager),
        in_noise=abs(speedup - 1) <= noise * speedup,
        compile_seconds=beyond,
        compile_cpu_seconds=cpu_seconds,
        sets=tuple(
            SetSpeed(
                call=call,
                eager_ms=median(own) * 1e3,
                compiled_ms=median(made) * 1e3,
                pairs=len(own),
            )
            for call, own, made in zip(calls, eager_sets, compiled_sets, strict=True)
        ),
        threads=torch.get_num_threads(),
        what=what,
        device=device,
        eager_peak_bytes=peaks[0],
        compiled_peak_bytes=peaks[1],
        compiled_again=compiled_again,
    )


def compare(
    first_sets: Sequence[Sequence[float]],
    second_sets: Sequence[Sequence[float]],
    first: str,
    second: str,
) -> EngineSpeed:
    """The record of two engines, from each one's seconds for each input set."""
    one, other = mean_round(first_sets), mean_round(second_sets)
    speedup, noise = ratio(one, other)
    return EngineSpeed(
        first=first,
        second=second,
        first_ms=median(one) * 1e3,
        second_ms=median(other) * 1e3,
        speedup=speedup,
        noise=noise,
        rounds=len(one),
        in_noise=abs(speedup - 1) <= noise * speedup,
    )
