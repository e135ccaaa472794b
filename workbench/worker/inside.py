"""Measures inside one of an engine's calls: its steps, or the errors of its kernels. Only
recordings that ask for it import this."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import structs
from torch._dynamo.utils import counters

from tcw.compiler.measure.account.optimizer import step_records_of
from tcw.compiler.measure.account.profile import profile, speed_of
from tcw.compiler.measure.account.records import IdCounts
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import Model, RandomState, prepare, prepared
from tcw.compiler.measure.compiled.collected import RecordedModel, collecting
from tcw.compiler.measure.precision.verify_call import verify_call
from tcw.compiler.measure.probes.kernel_nests import kernel_nests
from tcw.workbench.worker.backends import compiled
from tcw.workbench.worker.engine_calls import EngineCalls
from tcw.workbench.worker.failures import Ended
from tcw.workbench.worker.unrecorded import host_of
from tcw.workbench.worker.worker_recorder import WorkerRecorder

_SETTLING = 4
"""The maximum number of calls until one compiles nothing: fewer than torch's limit of recompiles,
at which every model stops."""


class Inside:
    """Runs the calls of each engine in turn, and measures inside them."""

    def __init__(
        self,
        recorder: WorkerRecorder,
        original: Model,
        optimizer: Any,
        sets: Sequence[InputSet],
        alone: bool,
    ) -> None:
        self.recorder = recorder
        self.host = host_of(recorder)
        self.original = original
        self.optimizer = optimizer
        """From the user's file, or None."""
        self.sets = sets
        self.alone = alone
        """Whether there is only one engine."""
        self._numbers = IdCounts()

    def calls(self, engine_calls: EngineCalls) -> Ended:
        """Make all calls of an engine, then measure one of them step by step, or verify its
        kernels."""
        recorder, settings = self.recorder, self.recorder.settings
        driven = recorder.run is not None
        kept = recorder.run if recorder.run is not None else []
        recorder.run, before = kept, len(kept)
        with collecting() as collected:
            ended = engine_calls.all()
            unsettled = 0
            if ended[0] == "ok" and engine_calls.reference is not None:
                unsettled = self._settle(engine_calls.compiled, engine_calls.reference.twin.model)
        if not driven:
            recorder.run = None
        if ended[0] != "ok" or engine_calls.reference is None:
            return ended
        apart = RecordedModel(
            engine_calls.engine,
            engine_calls.compiled,
            engine_calls.seconds,
            engine_calls.reference.twin,
            collected,
            kept[before:],
            unsettled,
        )
        inputs = self.sets[settings.profiled_call - 1]
        if settings.profile:
            self._profiled(apart, inputs)
        if settings.verify:
            engine_calls.wrong_kernel = verify_call(self.host, apart, inputs)
        return ended

    def _settle(self, model: Model, eager: Model) -> int:
        """Make the measured call again until it compiles nothing, and as often in eager. A model
        that fills a cache in its first call compiles another graph for the next, and that graph is
        the one to measure. Returns the graphs that the last of these calls compiled."""
        settings, state = self.recorder.settings, RandomState.now()
        inputs = self.sets[settings.profiled_call - 1]
        ours = self.host.with_hooks(prepared(model, inputs, settings.grad), records=True)
        theirs = self.host.with_hooks(prepared(eager, inputs, settings.grad), records=False)
        again = 0
        try:
            with self.host.unrecorded():
                for _ in range(_SETTLING):
                    before = counters["stats"]["unique_graphs"]
                    ours()()
                    again = counters["stats"]["unique_graphs"] - before
                    theirs()()
                    if not again:
                        break
        except (Exception, SystemExit):  # the measurement makes the same call, and reports it
            return again
        finally:
            state.restore()
        return again

    def _profiled(self, apart: RecordedModel, inputs: InputSet) -> None:
        """Measure one call step by step."""
        recorder, settings = self.recorder, self.recorder.settings
        measured = profile(self.host, apart, inputs, self._numbers)
        whole_only = measured is not None and measured.whole_only
        if self.optimizer is not None and settings.grad == "train" and not whole_only:
            options = structs.replace(settings, fullgraph=False, until="run")
            step = partial(compiled, settings=options, engine=apart.engine)
            for record in step_records_of(
                self.host,
                self.optimizer,
                self.original,
                apart,
                step,
                inputs,
                self._numbers,
            ):
                recorder.emit(record)
        if measured is not None and settings.nests and not whole_only:
            self._nests(apart, inputs)
        if measured is not None and self.alone:
            with self.host.unrecorded():
                speed = speed_of(measured, apart, inputs, settings.grad)
            recorder.emit(speed)

    def _nests(self, apart: RecordedModel, inputs: InputSet) -> None:
        """Time the loop nests of its kernels, one by one."""
        recorder, settings = self.recorder, self.recorder.settings
        self.host.begins("timing loop nests")
        state = RandomState.now()

        def run() -> None:
            prepare(apart.model, inputs, settings.grad)()

        try:
            with self.host.unrecorded():
                graphs, call = apart.collected, settings.profiled_call
                found = list(
                    kernel_nests(graphs.of_inductor, graphs.of_engine, apart.records, run, call)
                )
        finally:
            state.restore()
        for record in found:
            recorder.emit(record)
