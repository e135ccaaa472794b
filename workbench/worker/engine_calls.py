"""The calls of one engine: compiled, then eager for comparison."""

from __future__ import annotations

import time

from tcw.compiler.capture.cache_entries import CacheEntries
from tcw.compiler.measure.calls.inputs import InputSet, described_arguments
from tcw.compiler.measure.calls.runs import CompiledModel, Model, original_of, prepare
from tcw.compiler.measure.precision.reference import Reference
from tcw.compiler.measure.rounds.instructions import counter
from tcw.compiler.trace.records import CallEnd, CallStart, Engine, Numerics, Progress
from tcw.workbench.worker.backends import compiled, is_compiled, undo_compile
from tcw.workbench.worker.before_calls import run_before_call
from tcw.workbench.worker.blame import of_call
from tcw.workbench.worker.failures import Ended, doing_of, ended_by, failure_of
from tcw.workbench.worker.guardian import children_cpu_seconds
from tcw.workbench.worker.inputs import mark_dynamic, named_arguments, parameters
from tcw.workbench.worker.results import CallResults
from tcw.workbench.worker.unrecorded import host_of, unrecorded
from tcw.workbench.worker.worker_recorder import WorkerRecorder


class EngineCalls:
    """One model, compiled once by one engine, called with each of its input sets."""

    def __init__(
        self, recorder: WorkerRecorder, given: Model, sets: list[InputSet], engine: Engine
    ) -> None:
        self.recorder = recorder
        self.settings = recorder.settings
        self.engine = engine
        self.sets = sets
        self.given = given
        self.original = original_of(given)
        self.signature = parameters(self.original)
        self.compiled: Model = self.original
        self.reference: Reference | None = None
        self.numerics: Numerics | None = None
        """The verdict on all calls."""
        self.wrong_kernel: str | None = None
        """Id of the first wrong kernel, "" if none is; None if they were not compared."""
        self.entries = CacheEntries()
        self.children = 0.0
        self.instructions = counter()
        self.seconds: list[tuple[float, float]] = []
        """Wall and CPU seconds of the calls so far."""

    def all(self) -> Ended:
        """Make all calls. Returns how they ended."""
        recorder = self.recorder
        try:
            self.compiled = self.compiled_model()
        except BaseException as error:
            recorder.emit(failure_of(error, "compiling the model", recorder))
            return ended_by(error)
        self.children = children_cpu_seconds()
        if self.settings.until == "run":
            self.reference = Reference(self.original, host_of(recorder), self.engine)
        for number, inputs in enumerate(self.sets, 1):
            ended = self._call(number, inputs)
            if ended is not None:
                return ended
        if self.reference is not None:
            self.numerics = self.reference.verdict()
            self.recorder.emit(self.numerics)
        return "ok", None

    @property
    def observer(self) -> Reference | CallResults | None:
        """What compares the calls, if anything does."""
        return self.reference or self.recorder.results

    def as_compiled(self) -> CompiledModel:
        """What can be timed."""
        return CompiledModel(self.engine, self.compiled, self.seconds)

    def compile_again(self) -> None:
        """After `torch._dynamo.reset()`: compile and call every input set, unrecorded."""
        with unrecorded(self.recorder):
            self.compiled = self.compiled_model()
            for inputs in self.sets:
                prepare(self.compiled, inputs, self.settings.grad)()

    def compiled_model(self) -> Model:
        settings = self.settings
        if is_compiled(self.given) and settings.until not in ("capture", "autograd"):
            if settings.engine == "inductor":
                if settings.mode or settings.dynamic is not None or settings.fullgraph:
                    self.recorder.warn_once(
                        "the file compiles `model` itself: its own options are used",
                        code="own options",
                    )
                return self.given
            self.recorder.warn_once(
                f"the file compiles `model` itself: --engine {settings.engine} recompiled it, "
                "without the file's own options"
            )
        undo_compile(self.original)
        return compiled(self.original, settings, self.engine)

    def _call(self, number: int, inputs: InputSet) -> Ended | None:
        """Make one call and its eager reference; return how the recording ended, if it ended
        here."""
        recorder, observer = self.recorder, self.observer
        try:
            run = prepare(self.compiled, inputs, self.settings.grad)
            named = named_arguments(self.signature, run.positional, run.keyword)
            mark_dynamic(self.settings.mark_dynamic, named)
            if self.settings.before_calls:
                named = run_before_call(self.settings.before_calls, self.signature, run)
        except BaseException as error:
            recorder.emit(failure_of(error, f"preparing call {number}", recorder))
            return ended_by(error)
        recorder.emit(CallStart(call=number, arguments=described_arguments(named)))
        recorder.emit(Progress(stage="capture", activity=f"call {number} of {len(self.sets)}"))
        if observer is not None:
            observer.remember()
        recorder.call = recorder.calls = number
        recorder.arguments = named
        recorder.failed = ""
        recorder.compiled_in_call.clear()
        self.entries.begin(recorder)
        # The recording's own work inside it does not count as the call's time.
        cpu = time.process_time() - recorder.aside_cpu_seconds
        aside, before = recorder.aside_seconds, self.instructions and self.instructions()
        start = time.perf_counter() - recorder.aside_seconds
        try:
            outputs = run()
        except BaseException as error:
            return self._failed(number, inputs, error)
        finally:
            seconds = time.perf_counter() - recorder.aside_seconds - start
            hits = self.entries.served(recorder)
            recorder.call, recorder.arguments = 0, {}
        after = self.instructions and self.instructions()
        counted = after - before if after is not None and before is not None else None
        if not recorder.compiled_in_call or recorder.aside_seconds != aside:
            counted = None
        cpu = time.process_time() - recorder.aside_cpu_seconds - cpu
        if recorder.compiled_in_call:
            cpu += self._children_since()
        self.seconds.append((seconds, cpu))
        recorder.emit(
            CallEnd(
                call=number,
                seconds=seconds,
                compiled=tuple(recorder.compiled_in_call),
                hits=hits,
                instructions=counted,
            )
        )
        if observer is not None:
            recorder.emit(
                Progress(stage="run", activity=f"eager call {number} of {len(self.sets)}")
            )
            try:
                observer.compare(number, inputs, run, outputs)
            except BaseException as error:
                doing = f"eager call {number}"
                recorder.emit(failure_of(error, doing, recorder, eager_fails=True))
                return ended_by(error)
        return None

    def _children_since(self) -> float:
        """CPU seconds that child processes have spent since the last call of this."""
        before, self.children = self.children, children_cpu_seconds()
        return self.children - before

    def _failed(self, number: int, inputs: InputSet, error: BaseException) -> Ended:
        """A compiled call raised: try eager before blaming torch.compile."""
        recorder = self.recorder
        compile_id = recorder.failed
        doing = doing_of(error, number, compile_id)
        recorder.emit(Progress(stage="run", activity=f"trying call {number} in eager"))
        undo_compile(self.original)
        try:
            with unrecorded(recorder):
                prepare(self.original, inputs, self.settings.grad)()
        except BaseException as eager_error:
            failure = failure_of(
                eager_error,
                doing,
                recorder,
                compile_id=compile_id,
                eager_fails=True,
                compiled_error=error,
            )
            error = eager_error
        else:
            failure = failure_of(
                error,
                doing,
                recorder,
                compile_id=compile_id,
                eager_fails=False,
                blame=of_call(error),
            )
        recorder.emit(failure)
        return ended_by(error)
