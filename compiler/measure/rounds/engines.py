"""Chooses the runs that are timed against each other, and writes their records."""

from __future__ import annotations

from collections.abc import Sequence

from torch._dynamo.utils import counters

from compiler.measure.calls.inputs import InputSet, described_arguments
from compiler.measure.calls.runs import CompiledModel, Model, device_of, prepared
from compiler.measure.host import Host, reason_of
from compiler.measure.memory.peak import least_peak_bytes
from compiler.measure.rounds import speed
from compiler.trace.records import EnginePart, Warned

_SETS = 8
"""The most input sets, with distinct descriptions, that are timed."""


def time_engines(
    host: Host, eager: Model, engines: Sequence[CompiledModel], sets: list[InputSet]
) -> None:
    """Time eager against the results of one engine, or two, and record the times."""
    mode = host.settings.grad
    contenders: list[speed.Contender] = []
    known: dict[object, int] = {}
    stands_for: list[int] = []
    for number, inputs in enumerate(sets, 1):
        # positions serve as names: it only matters whether two sets are alike
        named = {str(index): value for index, value in enumerate(inputs.positional)}
        key = described_arguments({**named, **inputs.keyword})
        if key not in known and len(contenders) < _SETS:
            known[key] = len(contenders)
            runs = [prepared(engine.model, inputs, mode) for engine in engines]
            contenders.append(speed.Contender(number, prepared(eager, inputs, mode), *runs))
        stands_for.append(known.get(key, len(contenders) - 1))
    names = " against ".join(one.engine for one in engines) if len(engines) > 1 else "compiled"
    host.begins(f"timing eager against {names}")
    graphs = [0]

    def warmed() -> None:
        graphs[0] = counters["stats"]["unique_graphs"]

    if len(engines) == 1:  # the compiles of two could not be told apart
        for one in contenders:
            one.eager = host.with_hooks(one.eager, records=False)
            one.compiled = host.with_hooks(one.compiled, records=True)
    device = device_of(eager, sets)
    peaks: list[int | None] = [None] * (1 + len(engines))
    try:
        with host.unrecorded():
            times = speed.measure(contenders, warmed=warmed)
            again = counters["stats"]["unique_graphs"] - graphs[0]
            host.recorder.quiet = True
            running = [
                [speed.cpu_of(contender.runs()[1 + place]) for contender in contenders]
                for place in range(len(engines))
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
    for place, (engine, cpu_of_sets) in enumerate(zip(engines, running, strict=True)):
        if len(engines) > 1:
            host.emit(EnginePart(engine=engine.engine))
        first = [(wall, index) for (wall, _), index in zip(engine.calls, stands_for, strict=False)]
        cpu = sum(spent for _, spent in engine.calls)
        cpu -= sum(cpu_of_sets[index] for index in stands_for[: len(engine.calls)])
        found = [one.of_rival() for one in times] if place else times
        both = peaks[0], peaks[1 + place]
        host.emit(
            speed.summarise(contenders, found, first, max(0.0, cpu), what, device, both, again)
        )
    if len(engines) > 1:
        host.emit(speed.compare(times, engines[0].engine, engines[1].engine))


def _most(contenders: Sequence[speed.Contender], place: int, device: str) -> int | None:
    """The largest peak among the calls of one side."""
    peaks = [least_peak_bytes(one.runs()[place], device, graphs=place > 0) for one in contenders]
    return max((peak for peak in peaks if peak is not None), default=None)
