"""Which runs are timed against each other, and the record of it."""

from __future__ import annotations

from torch._dynamo.utils import counters

from compiler.control.recorder import Recorder
from compiler.measure import speed
from compiler.trace.records import Progress, Warned
from workbench.worker.describe import class_name, message_of
from workbench.worker.inputs import InputSet, described_arguments
from workbench.worker.ourselves import unrecorded
from workbench.worker.runs import Model, prepared

_SETS = 8
"""Input sets that differ in a description are timed each, up to this many."""


def time_both(
    recorder: Recorder,
    eager: Model,
    compiled: Model,
    sets: list[InputSet],
    calls: list[tuple[float, float]],
) -> None:
    """Time eager against compiled and record it.

    `calls` holds wall and CPU seconds of each recorded call, compilation included.
    """
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
            contenders.append(
                speed.Contender(
                    number, prepared(eager, inputs, mode), prepared(compiled, inputs, mode)
                )
            )
        stands_for.append(known.get(key, len(contenders) - 1))
    recorder.emit(Progress(stage="run", activity="timing eager against compiled"))
    graphs = counters["stats"]["unique_graphs"]
    try:
        with unrecorded(recorder):
            times = speed.measure(contenders)
            running = [speed.cpu_of(contender.compiled) for contender in contenders]
    except BaseException as error:  # whatever the user's model raises on a later run
        reason = f"{class_name(error)}: {message_of(error, 300)}"
        recorder.emit(Warned(message=f"speed not measured: a repeated call raised {reason}"))
        return
    if counters["stats"]["unique_graphs"] != graphs:
        recorder.emit(
            Warned(
                message="the model was compiled again while it was timed: its compiled time "
                "holds compile time"
            )
        )
    first = [(wall, index) for (wall, _), index in zip(calls, stands_for, strict=True)]
    cpu = sum(spent for _, spent in calls) - sum(running[index] for index in stands_for)
    what = "forward + backward" if mode == "train" else "forward"
    recorder.emit(speed.summarise(contenders, times, first, max(0.0, cpu), what))
