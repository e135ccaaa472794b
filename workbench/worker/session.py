"""The calls of one recording: compiled, then eager for comparison, then both for time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from compiler import pipeline
from compiler.capture.cache_entries import CacheEntries
from compiler.control.stages import reached
from compiler.measure import speed
from compiler.trace.records import CallEnd, CallStart, Engine, Progress, Status, Warned
from workbench.worker import isolation, patched
from workbench.worker.backends import compiled, is_compiled, register, undo_compile
from workbench.worker.environment import environment
from workbench.worker.failures import culprit_of, doing_of, failure_of
from workbench.worker.inputs import (
    InputSet,
    check_arguments,
    described_arguments,
    mark_dynamic,
    named_arguments,
    parameters,
)
from workbench.worker.load import Loaded, form_of, load_model, run_script
from workbench.worker.notes import WorkerRecorder
from workbench.worker.ourselves import unrecorded
from workbench.worker.reference import Reference
from workbench.worker.runs import Model, original_of, prepare
from workbench.worker.specification import CallSpecification
from workbench.worker.timing import time_both
from workbench.worker.user_code import UserCode

Ended = tuple[Status, int | None]
"""Status and exit code for the end record."""


def run(recorder: WorkerRecorder, code: UserCode, calls: list[CallSpecification]) -> Ended:
    """Load the user's file and record it."""
    settings = recorder.settings
    with pipeline.recording(recorder) as hooks:
        recorder.emit(environment(hooks))
        register(settings)
        isolation.step_aside()
        isolation.prepare_path(recorder.user_root, [settings.file, *settings.arguments])
        name = os.path.basename(code.file)
        if form_of(code, settings) == "script":
            recorder.emit(Progress(stage="load", activity=f"running {name}"))
            with patched.counting_calls(recorder):
                ended = _guarded(recorder, "running the script", lambda: run_script(code))
            if ended[0] == "ok" and not recorder.calls:
                recorder.emit(
                    Warned(
                        message=f"{name} ran as a script and called nothing compiled; a model file "
                        "has `model` and `example_inputs`"
                    )
                )
            return ended
        recorder.emit(Progress(stage="load", activity=f"loading {name}"))
        found: list[Loaded] = []
        ended = _guarded(
            recorder, "loading", lambda: found.append(load_model(code, settings, calls))
        )
        patched.warn_if_replaced(recorder)
        if not found or not reached("capture", settings.until):
            return ended
        return Session(recorder, found[0]).calls()


def _guarded(recorder: WorkerRecorder, doing: str, action: Callable[[], object]) -> Ended:
    """Run the user's code; what it raises becomes a failure record."""
    try:
        action()
    except BaseException as error:
        ended = ended_by(error)
        if doing != "running the script" or ended != ("exited", 0):
            recorder.emit(failure_of(error, doing, recorder))
            return ended
    return "ok", None


def ended_by(error: BaseException) -> Ended:
    """How a recording ends that this exception ended; the exit status is that of Python."""
    if not isinstance(error, SystemExit):
        return "failed", None
    if error.code is None:
        return "exited", 0
    return "exited", error.code if isinstance(error.code, int) else 1


class Session:
    """One model, compiled once, called with each of its input sets."""

    def __init__(self, recorder: WorkerRecorder, loaded: Loaded) -> None:
        self.recorder = recorder
        self.settings = recorder.settings
        self.engine: Engine = "tcw" if self.settings.engine == "tcw" else "inductor"
        self.sets = loaded.sets
        self.given = loaded.model
        self.original = original_of(loaded.model)
        self.signature = parameters(self.original)
        self.compiled: Model = self.original
        self.reference: Reference | None = None
        self.entries = CacheEntries()
        self.children = 0.0
        self.seconds: list[tuple[float, float]] = []
        """Wall and CPU seconds of the calls so far."""

    def calls(self) -> Ended:
        """All calls, then the measurements. Answers how the recording ended."""
        recorder = self.recorder
        try:
            for inputs in self.sets:
                check_arguments(self.original, self.signature, inputs)
            self.compiled = self._compiled_model()
        except BaseException as error:
            recorder.emit(failure_of(error, "compiling the model", recorder))
            return ended_by(error)
        self.children = speed.children_cpu_seconds()
        if self.settings.until == "run":
            self.reference = Reference(self.original, recorder)
        for number, inputs in enumerate(self.sets, 1):
            ended = self._call(number, inputs)
            if ended is not None:
                return ended
        if self.reference is not None:
            self.reference.finish()
            eager = self.reference.twin.model
            time_both(recorder, eager, self.compiled, self.sets, self.seconds)
        return "ok", None

    def _compiled_model(self) -> Model:
        stops_early = self.settings.until in ("capture", "autograd")
        if is_compiled(self.given) and not stops_early:
            if self.settings.mode or self.settings.dynamic is not None or self.settings.fullgraph:
                self.recorder.emit(
                    Warned(message="the file compiles `model` itself: its own options are used")
                )
            return self.given
        undo_compile(self.original)
        return compiled(self.original, self.settings, self.engine)

    def _call(self, number: int, inputs: InputSet) -> Ended | None:
        """One call with its eager reference; how the recording ended if it ended here."""
        recorder, reference = self.recorder, self.reference
        try:
            run = prepare(self.compiled, inputs, self.settings.grad)
            named = named_arguments(self.signature, run.positional, run.keyword)
            mark_dynamic(self.settings.mark_dynamic, named)
        except BaseException as error:
            recorder.emit(failure_of(error, f"preparing call {number}", recorder))
            return ended_by(error)
        recorder.emit(CallStart(call=number, arguments=described_arguments(named)))
        recorder.emit(Progress(stage="capture", activity=f"call {number} of {len(self.sets)}"))
        if reference is not None:
            reference.remember()
        recorder.call = recorder.calls = number
        recorder.arguments = named
        recorder.failed = ""
        recorder.compiled_in_call.clear()
        self.entries.begin(recorder)
        # What the recording does inside on its own account is none of the call's time.
        cpu = time.process_time() - recorder.aside_cpu_seconds
        start = time.perf_counter() - recorder.aside_seconds
        try:
            outputs = run()
        except BaseException as error:
            return self._failed(number, inputs, error)
        finally:
            seconds = time.perf_counter() - recorder.aside_seconds - start
            hits = self.entries.served(recorder)
            recorder.call, recorder.arguments = 0, {}
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
            )
        )
        if reference is not None:
            recorder.emit(
                Progress(stage="run", activity=f"eager call {number} of {len(self.sets)}")
            )
            try:
                reference.compare(number, inputs, run, outputs)
            except BaseException as error:
                doing = f"eager call {number}"
                recorder.emit(failure_of(error, doing, recorder, eager_fails=True))
                return ended_by(error)
        return None

    def _children_since(self) -> float:
        """CPU seconds that processes below this one spent since this was last asked."""
        before, self.children = self.children, speed.children_cpu_seconds()
        return self.children - before

    def _failed(self, number: int, inputs: InputSet, error: BaseException) -> Ended:
        """A compiled call raised: try eager before torch.compile is blamed."""
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
                culprit=culprit_of(error),
            )
        recorder.emit(failure)
        return ended_by(error)
