"""Runs of one model in this process, as the worker leaves them when they are over."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import torch

from compiler import pipeline
from compiler.control.recorder import Recorder
from compiler.trace.records import AnyRecord, Run, Settings
from compiler.trace.writer import TraceWriter
from workbench.worker.backends import compiled, register
from workbench.worker.finished_run import NOT_KEPT, FinishedRun
from workbench.worker.inputs import InputSet
from workbench.worker.runs import Model, prepare

_decode = msgspec.json.Decoder(AnyRecord).decode


class Trace:
    """All that was recorded, of all runs."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.recorder = self.of(Settings(file=__file__))

    def of(self, settings: Settings) -> Recorder:
        writer = TraceWriter(lambda line: self.records.append(_decode(line)))
        return Recorder(writer=writer, settings=settings)


@contextmanager
def _without_caches() -> Iterator[None]:
    """As in a worker, which begins with caches of its own; and no code of another copy is met."""
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        yield


def finished(
    trace: Trace,
    number: int,
    model: Model,
    sets: Sequence[tuple[Any, ...]],
    **settings: Any,
) -> FinishedRun:
    """Compile a copy of the model and call it; `settings` are those of the run."""
    chosen = Settings(file=__file__, grad=settings.pop("grad", "no-grad"), **settings)
    inputs = [InputSet(one) for one in sets]
    start = len(trace.records)
    recorder = trace.of(chosen)
    recorder.emit(Run(number=number, settings=chosen))

    def compile_and_call(quiet: bool) -> dict[Any, Model]:
        recorder.quiet = quiet
        with pipeline.recording(recorder), _without_caches():
            register(chosen)
            made = compiled(copy.deepcopy(model), chosen, chosen.engine)  # type: ignore[arg-type]
            for one in inputs:
                prepare(made, one, chosen.grad)()
        return {chosen.engine: made}

    torch._dynamo.reset()
    recorder.start_over()
    models = compile_and_call(False)
    kept = tuple(one for one in trace.records[start:] if not isinstance(one, NOT_KEPT))
    return FinishedRun(
        number=number,
        settings=chosen,
        sets=inputs,
        compiled=models,
        records=kept,
        compile_again=lambda: compile_and_call(True),
    )
