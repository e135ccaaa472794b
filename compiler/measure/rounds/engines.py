"""Chooses the runs that are timed against each other, and writes their records."""

from __future__ import annotations

from collections.abc import Sequence

from torch._dynamo.utils import counters

from tcw.compiler.measure.calls.inputs import InputSet, described_arguments
from tcw.compiler.measure.calls.runs import CompiledModel, Model, Prepare, device_of, prepared
from tcw.compiler.measure.host import Host, reason_of
from tcw.compiler.measure.memory.peak import least_peak_bytes
from tcw.compiler.measure.rounds import speed
from tcw.compiler.measure.rounds.whole_runs import seconds_in_rounds
from tcw.compiler.trace.records import EnginePart, Warned

_SETS = 8
"""The most input sets, with distinct descriptions, that are timed."""


def time_engines(
    host: Host, eager: Model, engines: Sequence[CompiledModel], sets: list[InputSet]
) -> None:
    """Time eager against the results of one engine, or two, and record the times."""
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
    names = " against ".join(one.engine for one in engines) if len(engines) > 1 else "compiled"
    host.begins(f"timing eager against {names}")
    graphs = [0]

    def warmed() -> None:
        graphs[0] = counters["stats"]["unique_graphs"]

    if len(engines) == 1:  # the compiles of two could not be told apart
        for runs in contenders:
            runs[:] = [host.with_hooks(one, records=place > 0) for place, one in enumerate(runs)]
    device = device_of(eager, sets)
    peaks: list[int | None] = [None] * (1 + len(engines))
    try:
        with host.unrecorded():
            times = seconds_in_rounds(contenders, speed.PLAN, warmed)
            again = counters["stats"]["unique_graphs"] - graphs[0]
            host.recorder.quiet = True
            running = [
                [speed.cpu_of(runs[place]) for runs in contenders]
                for place in range(1, 1 + len(engines))
            ]
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
        host.emit(
            speed.summarise(
                calls, eager_times, engine_times[place], first, max(0.0, cpu), what, device, both,
                again,
            )
        )  # fmt: skip
    if len(engines) > 1:
        one, other = engines
        host.emit(speed.compare(engine_times[0], engine_times[1], one.engine, other.engine))


def _most(contenders: Sequence[Sequence[Prepare]], place: int, device: str) -> int | None:
    """The largest peak among the calls of one side."""
    peaks = [least_peak_bytes(runs[place], device, graphs=place > 0) for runs in contenders]
    return max((peak for peak in peaks if peak is not None), default=None)
