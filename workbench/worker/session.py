"""The calls of one recording: compiled, then eager for comparison, then both for timing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from tcw.compiler import pipeline
from tcw.compiler.capture import settings as settings_hook
from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.runs import Model, RandomState, Twin, original_of
from tcw.compiler.measure.compiled.outside_graphs import CalledGraphs, called_graphs
from tcw.compiler.measure.rounds.speed import time_engines
from tcw.compiler.protocol.stages import reached
from tcw.compiler.trace.records import Engine, EnginePart, Progress, Settings, Warned
from tcw.workbench.worker.backends import applied, counting_calls, register, warn_if_replaced
from tcw.workbench.worker.differences import explain_difference
from tcw.workbench.worker.engine_calls import EngineCalls
from tcw.workbench.worker.environment import environment
from tcw.workbench.worker.failures import Ended, ended_by, failure_of
from tcw.workbench.worker.forget import beside_what_is_compiled
from tcw.workbench.worker.inputs import check_arguments, parameters, with_tensors
from tcw.workbench.worker.load import Loaded, form_of, load_call, load_model, run_script
from tcw.workbench.worker.specification import CallSpecification
from tcw.workbench.worker.unrecorded import host_of
from tcw.workbench.worker.user_code import UserCode
from tcw.workbench.worker.worker_recorder import WorkerRecorder

if TYPE_CHECKING:
    from tcw.workbench.worker.inside import Inside

ENGINES: dict[str, tuple[Engine, ...]] = {
    "inductor": ("inductor",),
    "tcw": ("tcw",),
    "both": ("inductor", "tcw"),
}


def run(recorder: WorkerRecorder, code: UserCode, calls: list[CallSpecification]) -> Ended:
    """Load the user's file and record it."""
    settings = recorder.settings
    with pipeline.recording(recorder) as hooks:
        recorder.emit(environment(hooks))
        hand_over(settings, recorder.user_root)
        if form_of(code, settings) == "script" and not takes_a_call(settings):
            return script(recorder, code)
        ended, loaded = load(recorder, code, calls)
        settings_hook.record_changes(recorder)
        if loaded is None or not reached("capture", settings.until):
            return ended
        return Session(recorder, loaded).calls()


def hand_over(settings: Settings, root: str) -> None:
    """From here on the process belongs to the user's program, which gets what Python would give it:
    a `__main__` and a `sys.argv` of its own, its folder first on `sys.path`.

    Nothing is written next to the user's files, so their bytecode is not cached.
    """
    register(settings)
    sys.modules["__main__"] = ModuleType("__main__")
    sys.path.insert(0, root)
    sys.argv = [settings.file, *settings.arguments]
    sys.dont_write_bytecode = True


def script(recorder: WorkerRecorder, code: UserCode) -> Ended:
    """Run the file as a script, recorded."""
    name = os.path.basename(code.file)
    recorder.emit(Progress(stage="load", activity=f"running {name}"))
    with counting_calls(recorder):
        ended = _guarded(recorder, "running the script", lambda: _run_script(recorder, code))
    if ended[0] == "ok" and not recorder.calls:
        recorder.emit(
            Warned(
                message=f"{name} ran as a script and called nothing compiled; a model file "
                "has `model` and `example_inputs`"
            )
        )
    return ended


def _run_script(recorder: WorkerRecorder, code: UserCode) -> None:
    engine = recorder.settings.engine
    if engine != "inductor":
        raise UserError(
            f"--engine {engine}: {os.path.basename(code.file)} is a script, which calls "
            "torch.compile with a backend of its own",
            type="ScriptBackend",
            hint='in the script: torch.compile(…, backend="tcw")',
            doing="loading",
        )
    with applied(recorder.settings.torch_settings, {}, recorder.user_root):
        try:
            run_script(code)
        finally:
            settings_hook.record_changes(recorder)


def load(
    recorder: WorkerRecorder, code: UserCode, calls: list[CallSpecification]
) -> tuple[Ended, Loaded | None]:
    """Run the file for its model and inputs; None if that failed, which is recorded."""
    settings = recorder.settings
    recorder.emit(Progress(stage="load", activity=f"loading {os.path.basename(code.file)}"))
    found: list[Loaded] = []
    if form_of(code, settings) == "script":
        ended = _guarded(recorder, "loading", lambda: found.append(_call_of(recorder, code)))
    else:
        ended = _guarded(
            recorder, "loading", lambda: found.append(load_model(code, settings, calls))
        )
    warn_if_replaced(recorder)
    if not found:
        return ended, None
    if settings.as_tensors:
        ended = _guarded(recorder, "reading inputs", lambda: _with_tensors(found[0], settings))
    return ended, found[0] if ended[0] == "ok" else None


def takes_a_call(settings: Settings) -> bool:
    """Whether a script is run for one call that it makes."""
    return settings.script_call or settings.profile


def _call_of(recorder: WorkerRecorder, code: UserCode) -> Loaded:
    """The wanted call of a script, as the only one of a model."""
    wanted = recorder.settings.profiled_call
    loaded, place = load_call(code, wanted)
    recorder.settings = msgspec.structs.replace(recorder.settings, profiled_call=1)
    recorder.emit(
        Warned(
            message=f"{os.path.basename(code.file)} is a script: this is call {wanted} of what it "
            f"compiles, {place}, and the script was left there"
        )
    )
    return loaded


def _with_tensors(loaded: Loaded, settings: Settings) -> None:
    signature = parameters(original_of(loaded.model))
    loaded.sets = with_tensors(loaded.sets, settings.as_tensors, signature)


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


class Session:
    """One model, compiled by each engine in turn, as if each were the first."""

    def __init__(self, recorder: WorkerRecorder, loaded: Loaded) -> None:
        self.recorder = recorder
        self.loaded = loaded
        self.engines = ENGINES[recorder.settings.engine]
        self.done: list[EngineCalls] = []
        """The calls made so far, by engine."""
        self._inside: Inside | None = None

    def calls(self) -> Ended:
        """Make all calls, then measure. Returns how the recording ended."""
        recorder = self.recorder
        try:
            with (
                self.loaded.around(),
                applied(recorder.settings.torch_settings, self.loaded.names, recorder.user_root),
            ):
                return self._calls()
        except UserError as error:
            recorder.emit(failure_of(error, "setting torch up", recorder))
            return ended_by(error)

    def _calls(self) -> Ended:
        recorder, given, sets = self.recorder, self.loaded.model, self.loaded.sets
        original = original_of(given)
        signature = parameters(original)
        try:
            self._check_profiled_call()
            for inputs in sets:
                check_arguments(original, signature, inputs)
        except BaseException as error:
            recorder.emit(failure_of(error, "compiling the model", recorder))
            return ended_by(error)
        graphs: CalledGraphs | None = None
        models = [given, *(self._copy(original) for _ in self.engines[1:])]
        generators = RandomState.now()
        done = self.done
        looks_inside = recorder.settings.profile or recorder.settings.verify
        for engine, model in zip(self.engines, models, strict=True):
            if len(self.engines) > 1:
                if done:
                    start_over(recorder)
                    generators.restore()
                recorder.emit(EnginePart(engine=engine))
            done.append(EngineCalls(recorder, model, sets, engine))
            if looks_inside:
                ended = self._looking_inside().calls(done[-1])
            else:
                with called_graphs() as graphs:
                    ended = done[-1].all()
            if ended[0] != "ok":
                return ended
        reference = done[0].reference
        if reference is not None and not (looks_inside and len(done) == 1):
            if len(done) > 1:
                self._compile_side_by_side(done)
            engines = [calls.as_compiled() for calls in done]
            with self._limit_for_all(fails=len(done) > 1):
                outside = graphs.seconds_outside if graphs and len(done) == 1 else None
                time_engines(host_of(recorder), reference.twin.model, engines, sets, outside)
        for calls in done:
            explain_difference(calls, alone=len(done) == 1)
        return "ok", None

    def _limit_for_all(self, fails: bool) -> AbstractContextManager[Any]:
        """torch's recompile limit for each engine, though torch counts the code of all. `fails`:
        to reach it is an error, for nothing records what then runs eagerly."""
        config = torch._dynamo.config
        fails = fails and not config.suppress_errors
        patched_limit: AbstractContextManager[Any] = config.patch(
            recompile_limit=len(self.engines) * config.recompile_limit,
            fail_on_recompile_limit_hit=fails or config.fail_on_recompile_limit_hit,
        )
        return patched_limit

    def _check_profiled_call(self) -> None:
        wanted, there = self.recorder.settings.profiled_call, len(self.loaded.sets)
        if wanted > there:
            raise UserError(
                f"there is no call {wanted} to profile: the file has "
                f"{there} input set{'s' * (there != 1)}",
                type="NoCall",
                hint="--call counts the input sets from 1",
                doing="profiling",
            )

    def _looking_inside(self) -> Inside:
        if self._inside is None:
            from tcw.workbench.worker.inside import Inside

            loaded = self.loaded
            original, alone = original_of(loaded.model), len(self.engines) == 1
            self._inside = Inside(self.recorder, original, loaded.optimizer, loaded.sets, alone)
        return self._inside

    def _copy(self, original: Model) -> Model:
        twin = Twin(original)
        if twin.shared:
            self.recorder.emit(
                Warned(
                    message=f"the model cannot be copied ({twin.shared}): the second engine goes "
                    "on with the state that the first one left"
                )
            )
        return twin.model

    def _compile_side_by_side(self, done: list[EngineCalls]) -> None:
        """Compile with both engines at once, for timing: their earlier code was dropped in
        between."""
        torch._dynamo.reset()
        with self._limit_for_all(fails=False):
            for calls in done:
                beside_what_is_compiled()
                calls.compile_again()


def start_over(recorder: WorkerRecorder) -> None:
    """Forget what was compiled, so that the next engine's ids count from 0 as well."""
    torch._dynamo.reset()
    recorder.start_over()
