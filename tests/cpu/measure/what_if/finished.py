"""Finished runs of one model in this process, as the worker leaves them."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import msgspec
import torch

from tcw.compiler import pipeline
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import Model, prepare
from tcw.compiler.measure.what_if.finished_run import FinishedRun
from tcw.compiler.trace.records import AnyRecord, Engine, Run, Settings
from tcw.compiler.trace.writer import TraceWriter
from tcw.workbench.worker.backends import alone, register
from tcw.workbench.worker.forget import beside_what_is_compiled
from tcw.workbench.worker.worker_recorder import NOT_KEPT

_decode = msgspec.json.Decoder(AnyRecord).decode


class Trace:
    """All records of all runs."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.recorder = self.of(Settings(file=__file__))

    def of(self, settings: Settings) -> Recorder:
        writer = TraceWriter(lambda line: self.records.append(_decode(line)))
        return Recorder(writer=writer, settings=settings)


@contextmanager
def _without_caches() -> Iterator[None]:
    """No cache serves what another run made."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {"TCW_CACHE_DIR": folder}),
        torch._inductor.config.patch(force_disable_caches=True),
    ):
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

    def compile_and_call(listener: Recorder) -> dict[Any, Model]:
        with pipeline.recording(listener), _without_caches():
            register(chosen)
            engine: Engine = "tcw" if chosen.engine == "tcw" else "inductor"
            backend = alone(chosen, engine)
            made = torch.compile(copy.deepcopy(model), backend=backend, dynamic=chosen.dynamic)
            beside_what_is_compiled()
            for one in inputs:
                prepare(made, one, chosen.grad)()
        return {engine: made}

    torch._dynamo.reset()
    recorder.start_over()
    compile_and_call(recorder)
    kept = tuple(record for record in trace.records[start:] if not isinstance(record, NOT_KEPT))
    return FinishedRun(
        number=number,
        settings=chosen,
        sets=inputs,
        records=kept,
        random_operations=tuple(recorder.random_operations),
        compile_again=lambda: compile_and_call(Recorder(TraceWriter(), chosen)),
    )
