"""One of an engine's calls looked into: taken apart, or its kernels verified.

A recording that asks for neither does without what this imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.trace.records import Progress
from workbench.worker.engine_calls import Ended, EngineCalls
from workbench.worker.inputs import InputSet
from workbench.worker.notes import WorkerRecorder
from workbench.worker.optimizer import step_records_of
from workbench.worker.ourselves import unrecorded
from workbench.worker.profiling import Compiled, collecting, profile, speed_of
from workbench.worker.profiling_nests import kernel_nests
from workbench.worker.profiling_records import Numbers
from workbench.worker.runs import Model, RandomState, prepare
from workbench.worker.verifying import verify_call


class Inside:
    """Runs the calls of each engine in turn, and looks into them."""

    def __init__(
        self,
        recorder: WorkerRecorder,
        original: Model,
        optimizer: Any,
        sets: Sequence[InputSet],
        alone: bool,
    ) -> None:
        self.recorder = recorder
        self.original = original
        self.optimizer = optimizer
        """As the user's file gives it, or None."""
        self.sets = sets
        self.alone = alone
        """There is one engine."""
        self._numbers = Numbers()

    def calls(self, one: EngineCalls) -> Ended:
        """All calls of an engine, then one of them taken apart, or its kernels verified."""
        recorder, settings = self.recorder, self.recorder.settings
        driven = recorder.run is not None
        kept = recorder.run if recorder.run is not None else []
        recorder.run, before = kept, len(kept)
        with collecting() as collected:
            ended = one.all()
        if not driven:
            recorder.run = None
        if ended[0] != "ok" or one.reference is None:
            return ended
        apart = Compiled(
            one.engine, one.compiled, one.reference.twin, collected, kept[before:], one.seconds
        )
        inputs = self.sets[settings.profiled_call - 1]
        if settings.profile:
            self._profiled(apart, inputs)
        if settings.verify:
            verify_call(recorder, apart, inputs)
        return ended

    def _profiled(self, apart: Compiled, inputs: InputSet) -> None:
        """One call taken apart."""
        recorder, settings = self.recorder, self.recorder.settings
        measured = profile(recorder, apart, inputs, self._numbers)
        if self.optimizer is not None and settings.grad == "train":
            contended = measured is not None and measured.contended
            for record in step_records_of(
                recorder, self.optimizer, self.original, apart, inputs, self._numbers, contended
            ):
                recorder.emit(record)
        if measured is not None and settings.nests:
            self._nests(apart, inputs)
        if measured is not None and self.alone:
            with unrecorded(recorder):
                found = speed_of(measured, apart, inputs, settings.grad)
            recorder.emit(found)

    def _nests(self, apart: Compiled, inputs: InputSet) -> None:
        """The loop nests of its kernels, one by one."""
        recorder, settings = self.recorder, self.recorder.settings
        recorder.emit(Progress(stage="run", activity="timing loop nests"))
        state = RandomState.now()

        def run() -> None:
            prepare(apart.model, inputs, settings.grad)()

        try:
            with unrecorded(recorder):
                graphs, call = apart.collected, settings.profiled_call
                found = list(
                    kernel_nests(graphs.of_inductor, graphs.of_engine, apart.records, run, call)
                )
        finally:
            state.restore()
        for record in found:
            recorder.emit(record)
