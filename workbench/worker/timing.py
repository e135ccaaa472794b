"""Which runs are timed against each other, and the records of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch._dynamo.utils import counters

from compiler.control.recorder import Recorder
from compiler.measure.calls.leaves import leaves
from compiler.measure.memory.peak import peak_bytes
from compiler.measure.rounds import speed
from compiler.trace.records import Engine, EnginePart, Progress, Warned
from workbench.worker.describe import class_name, message_of
from workbench.worker.inputs import InputSet, described_arguments
from workbench.worker.ourselves import unrecorded
from workbench.worker.runs import Model, prepared

_SETS = 8
"""Input sets that differ in a description are timed each, up to this many."""


@dataclass
class Side:
    """What one engine compiled."""

    engine: Engine
    compiled: Model
    calls: list[tuple[float, float]]
    """Wall and CPU seconds of each recorded call, compilation included."""


def time_sides(
    recorder: Recorder, eager: Model, sides: Sequence[Side], sets: list[InputSet]
) -> None:
    """Time eager against what one engine compiled, or two, and record it."""
    mode = recorder.settings.grad
    contenders: list[speed.Contender] = []
    known: dict[object, int] = {}
    stands_for: list[int] = []
    for number, inputs in enumerate(sets, 1):
        # positions are as good as names here: only whether two sets are alike matters
        named = {str(index): value for index, value in enumerate(inputs.positional)}
        key = described_arguments({**named, **inputs.keyword})
        if key not in known and len(contenders) < _SETS:
            known[key] = len(contenders)
            runs = [prepared(side.compiled, inputs, mode) for side in sides]
            contenders.append(speed.Contender(number, prepared(eager, inputs, mode), *runs))
        stands_for.append(known.get(key, len(contenders) - 1))
    names = " against ".join(side.engine for side in sides) if len(sides) > 1 else "compiled"
    recorder.emit(Progress(stage="run", activity=f"timing eager against {names}"))
    graphs = [0]

    def warmed() -> None:
        graphs[0] = counters["stats"]["unique_graphs"]

    # A model that recompiles on the same inputs must not pass for one that does not, so compiles
    # of the timed calls are recorded. Those of two engines could not be told apart, and a driven
    # compile must not stop here.
    if len(sides) == 1 and recorder.live is None:
        for one in contenders:
            one.eager = _with_hooks(recorder, one.eager, quiet=True)
            one.compiled = _with_hooks(recorder, one.compiled, quiet=False)
    device = device_of(eager, sets)
    peaks: list[int | None] = [None] * (1 + len(sides))
    try:
        with unrecorded(recorder):
            times = speed.measure(contenders, warmed=warmed)
            again = counters["stats"]["unique_graphs"] - graphs[0]
            recorder.quiet = True
            running = [
                [speed.cpu_of(contender.sides()[1 + place]) for contender in contenders]
                for place in range(len(sides))
            ]
            if recorder.settings.memory:
                peaks = [_most(contenders, place, device) for place in range(1 + len(sides))]
    except BaseException as error:  # whatever the user's model raises on a later run
        reason = f"{class_name(error)}: {message_of(error, 300)}"
        recorder.emit(Warned(message=f"speed not measured: a repeated call raised {reason}"))
        return
    what = "forward + backward" if mode == "train" else "forward"
    for place, (side, cpu_of_sets) in enumerate(zip(sides, running, strict=True)):
        if len(sides) > 1:
            recorder.emit(EnginePart(engine=side.engine))
        first = [(wall, index) for (wall, _), index in zip(side.calls, stands_for, strict=False)]
        cpu = sum(spent for _, spent in side.calls)
        cpu -= sum(cpu_of_sets[index] for index in stands_for[: len(side.calls)])
        found = [one.of_rival() for one in times] if place else times
        both = peaks[0], peaks[1 + place]
        recorder.emit(
            speed.summarise(contenders, found, first, max(0.0, cpu), what, device, both, again)
        )
    if len(sides) > 1:
        recorder.emit(speed.compare(times, sides[0].engine, sides[1].engine))


def _with_hooks(recorder: Recorder, side: speed.Side, quiet: bool) -> speed.Side:
    """The side with hooks switched as it is prepared, so that the clock does not see it."""

    def prepare() -> speed.Prepared:
        recorder.quiet = quiet
        return side()

    return prepare


def device_of(model: Model, sets: Sequence[InputSet]) -> str:
    """`cuda` where any parameter or input is on a GPU, else `cpu`."""
    tensors = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    tensors += [value for one in sets for _, value in leaves((one.positional, one.keyword))]
    on_gpu = any(isinstance(value, torch.Tensor) and value.is_cuda for value in tensors)
    return "cuda" if on_gpu else "cpu"


def _most(contenders: Sequence[speed.Contender], place: int, device: str) -> int | None:
    """Of one side's calls the one that takes most; of two tries the lesser."""
    most: list[int] = []
    for contender in contenders:
        tries = [peak_bytes(contender.sides()[place](), device, graphs=place > 0) for _ in range(2)]
        most += [min(known)] if (known := [one for one in tries if one is not None]) else []
    return max(most, default=None)
