"""The calls of one recording: compiled, then eager for comparison, then both for time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from msgspec import structs
from torch._dynamo.utils import counters

from compiler import pipeline
from compiler.control.recorder import Recorder
from compiler.control.stages import reached
from compiler.measure import speed
from compiler.measure.leaves import leaves
from compiler.measure.numerics import Comparison
from compiler.trace.records import CallEnd, CallStart, Progress, Status, Warned
from workbench.worker import patched
from workbench.worker.backends import compiled, is_compiled
from workbench.worker.describe import class_name
from workbench.worker.environment import environment
from workbench.worker.failures import Culprit, cause, failure_of
from workbench.worker.inputs import (
    InputSet,
    check_arguments,
    described_arguments,
    mark_dynamic,
    named_arguments,
    parameters,
)
from workbench.worker.load import Loaded, form_of, load_model, run_script
from workbench.worker.runs import (
    Model,
    PreparedRun,
    RandomState,
    Twin,
    original_of,
    prepare,
    prepared,
)
from workbench.worker.specification import CallSpecification
from workbench.worker.user_code import UserCode, UserError

_TIMED_SETS = 8

Ended = tuple[Status, int | None]
"""Status and exit code for the end record."""


def run(recorder: Recorder, code: UserCode, calls: list[CallSpecification]) -> Ended:
    """Load the user's file and record it."""
    settings = recorder.settings
    with pipeline.recording(recorder) as hooks:
        recorder.emit(environment(hooks))
        name = os.path.basename(code.file)
        if form_of(code, settings) == "script":
            recorder.emit(Progress(stage="load", activity=f"running {name}"))
            with patched.counting_calls(recorder):
                return _guarded(recorder, "running the script", lambda: run_script(code))
        recorder.emit(Progress(stage="load", activity=f"loading {name}"))
        found: list[Loaded] = []
        ended = _guarded(
            recorder, "loading", lambda: found.append(load_model(code, settings, calls))
        )
        patched.warn_if_replaced(recorder)
        if not found or not reached("capture", settings.until):
            return ended
        return Session(recorder, found[0]).calls()


def _guarded(recorder: Recorder, doing: str, action: Callable[[], object]) -> Ended:
    """Run the user's code; what it raises becomes a failure record."""
    try:
        action()
    except SystemExit as error:
        status = exit_status(error)
        if doing == "running the script" and status == 0:
            return "ok", 0
        recorder.emit(failure_of(error, doing, recorder))
        return "exited", status
    except BaseException as error:
        recorder.emit(failure_of(error, doing, recorder))
        return "failed", None
    return "ok", None


def exit_status(error: SystemExit) -> int:
    """The exit status that Python would give the process."""
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


class Session:
    """One model, compiled once, called with each of its input sets."""

    def __init__(self, recorder: Recorder, loaded: Loaded) -> None:
        self.recorder = recorder
        self.settings = recorder.settings
        self.sets = loaded.sets
        self.given = loaded.model
        self.original = original_of(loaded.model)
        self.signature = parameters(self.original)
        self.measured = self.settings.until == "run"
        self.compiled: Model = self.original
        self.twin: Twin | None = None
        self.seconds: list[float] = []
        self.cpu = 0.0
        self.comparison = Comparison()
        self.random = False

    def calls(self) -> Ended:
        """All calls, then the measurements. Answers how the recording ended."""
        recorder = self.recorder
        try:
            for inputs in self.sets:
                check_arguments(self.original, self.signature, inputs)
            self.compiled = self._compiled_model()
        except BaseException as error:
            recorder.emit(failure_of(error, "compiling the model", recorder))
            return "failed", None
        if self.measured:
            self.twin = Twin(self.original)
            if self.twin.shared:
                recorder.emit(
                    Warned(
                        message=f"the model cannot be copied ({self.twin.shared}): eager and "
                        "compiled share it, and its state is put back between them"
                    )
                )
        for number, inputs in enumerate(self.sets, 1):
            ended = self._call(number, inputs)
            if ended is not None:
                return ended
        if self.measured:
            self._emit_numerics()
            self._measure()
        return "ok", None

    def _compiled_model(self) -> Model:
        stops_early = self.settings.until in ("capture", "autograd")
        if is_compiled(self.given) and not stops_early:
            if self.settings.mode or self.settings.dynamic is not None or self.settings.fullgraph:
                self.recorder.emit(
                    Warned(message="the file compiles `model` itself: its own options are used")
                )
            return self.given
        return compiled(self.original, self.settings)

    def _call(self, number: int, inputs: InputSet) -> Ended | None:
        """One call with its eager reference; how the recording ended if it ended here."""
        recorder, mode = self.recorder, self.settings.grad
        recorder.call = number
        recorder.compiled_in_call.clear()
        before = RandomState.now()
        try:
            run = prepare(self.compiled, inputs, mode)
            named = named_arguments(self.signature, run.positional, run.keyword)
            mark_dynamic(self.settings.mark_dynamic, named)
        except BaseException as error:
            recorder.emit(failure_of(error, f"preparing call {number}", recorder))
            return "failed", None
        recorder.emit(CallStart(call=number, arguments=described_arguments(named)))
        recorder.emit(Progress(stage="capture", activity=f"call {number} of {len(self.sets)}"))
        if self.twin is not None:
            self.twin.remember()
        cpu = speed.cpu_seconds() if self.measured else 0.0
        start = time.perf_counter()
        try:
            outputs = run()
        except BaseException as error:
            recorder.call = 0
            return self._failed(number, inputs, error)
        seconds = time.perf_counter() - start
        self.seconds.append(seconds)
        if self.measured:
            self.cpu += speed.cpu_seconds() - cpu
        recorder.emit(
            CallEnd(call=number, seconds=seconds, compiled=tuple(recorder.compiled_in_call))
        )
        recorder.call = 0
        if self.twin is not None:
            return self._compare(number, inputs, run, outputs, before)
        return None

    def _compare(
        self, number: int, inputs: InputSet, run: PreparedRun, outputs: Any, before: RandomState
    ) -> Ended | None:
        """The same call in eager, from the same state; both results side by side."""
        recorder, twin = self.recorder, self.twin
        assert twin is not None
        recorder.quiet = True
        after = RandomState.now()
        recorder.emit(Progress(stage="run", activity=f"eager call {number} of {len(self.sets)}"))
        try:
            # what gradients there are is read first: with a shared model the next run clears them
            ours = run.result(outputs)
            twin.rewind()
            before.restore()
            reference = prepare(twin.model, inputs, self.settings.grad)
            theirs = reference.result(reference())
        except BaseException as error:
            recorder.emit(failure_of(error, f"eager call {number}", recorder, eager_fails=True))
            return _ended_by(error)
        finally:
            recorder.quiet = False
        drew = before.drawn_since()
        after.restore()
        accepted = self.comparison.add(
            number, list(leaves(ours.outputs)), list(leaves(theirs.outputs))
        )
        if ours.gradients or theirs.gradients:
            accepted &= self.comparison.add(number, ours.gradients, theirs.gradients)
        self.random |= drew and not accepted
        return None

    def _failed(self, number: int, inputs: InputSet, error: BaseException) -> Ended:
        """A compiled call raised: try eager before torch.compile is blamed."""
        recorder = self.recorder
        compile_id = recorder.compile_id
        doing = doing_of(error, number, compile_id)
        recorder.emit(Progress(stage="run", activity=f"trying call {number} in eager"))
        recorder.quiet = True
        try:
            prepare(self.original, inputs, self.settings.grad)()
        except BaseException as eager_error:
            failure = failure_of(
                eager_error, doing, recorder, compile_id=compile_id, eager_fails=True
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
        finally:
            recorder.quiet = False
        recorder.emit(failure)
        return _ended_by(error)

    def _emit_numerics(self) -> None:
        found = self.comparison.record()
        if self.random:
            found = structs.replace(
                found,
                within=None,
                note="; ".join(
                    filter(
                        None,
                        (
                            found.note,
                            "the model draws random numbers, and torch.compile draws others than "
                            "eager: torch._inductor.config.fallback_random = True makes them equal",
                        ),
                    )
                ),
            )
        self.recorder.emit(found)

    def _measure(self) -> None:
        """Eager against compiled, in time."""
        assert self.twin is not None
        recorder, mode = self.recorder, self.settings.grad
        contenders, of_call = self._contenders()
        recorder.emit(Progress(stage="run", activity="timing eager against compiled"))
        recorder.quiet = True
        graphs = counters["stats"]["unique_graphs"]
        try:
            times = speed.measure(contenders)
            running = [speed.cpu_of(contender.compiled) for contender in contenders]
        except BaseException as error:
            recorder.emit(
                Warned(message=f"speed not measured: {failure_of(error, '', recorder).message}")
            )
            return
        finally:
            recorder.quiet = False
        if counters["stats"]["unique_graphs"] != graphs:
            recorder.emit(
                Warned(
                    message="the model was compiled again while it was timed: its compiled time "
                    "holds compile time"
                )
            )
        what = "forward + backward" if mode == "train" else "forward"
        calls = list(zip(self.seconds, of_call, strict=True))
        cpu = max(0.0, self.cpu - sum(running[index] for index in of_call))
        recorder.emit(speed.summarise(contenders, times, calls, cpu, what))

    def _contenders(self) -> tuple[list[speed.Contender], list[int]]:
        """Distinct input sets, at most eight of them, and the one that stands for each call."""
        assert self.twin is not None
        mode = self.settings.grad
        known: dict[object, int] = {}
        contenders: list[speed.Contender] = []
        of_call: list[int] = []
        for number, inputs in enumerate(self.sets, 1):
            key = described_arguments(
                named_arguments(self.signature, inputs.positional, inputs.keyword)
            )
            if key not in known and len(contenders) < _TIMED_SETS:
                known[key] = len(contenders)
                contenders.append(
                    speed.Contender(
                        number,
                        prepared(self.twin.model, inputs, mode),
                        prepared(self.compiled, inputs, mode),
                    )
                )
            of_call.append(known.get(key, len(contenders) - 1))
        return contenders, of_call


def doing_of(error: BaseException, number: int, compile_id: str) -> str:
    """`call 1, capture of 0/0`: which part of torch.compile an exception of its own comes from."""
    modules = {kind.__module__.rpartition(".")[0] for kind in type(error).__mro__}
    if not any(module.startswith(("torch._dynamo", "torch._inductor")) for module in modules):
        return f"call {number}"
    wraps = isinstance(vars(error).get("inner_exception"), BaseException)
    part = "compiling" if wraps else "capture of"
    return f"call {number}, {part} {compile_id}" if compile_id else f"call {number}, {part} a frame"


def culprit_of(error: BaseException) -> Culprit:
    """Whose fault it is where eager succeeds: a missing C++ compiler is not torch's."""
    if isinstance(error, UserError):
        return "user"
    return "user" if class_name(cause(error)) == "InvalidCxxCompiler" else "torch"


def _ended_by(error: BaseException) -> Ended:
    return ("exited", exit_status(error)) if isinstance(error, SystemExit) else ("failed", None)
