"""A recording that a person drives: one run after the other, in one process.

Each run starts from the model and inputs as they were before run 1. If this process ends, its runs
are lost; the front end starts a new one for the next run.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
import torch

from tcw.compiler import pipeline
from tcw.compiler.control.live import Live
from tcw.compiler.control.safely import Safely
from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.runs import Model, RandomState, original_of, prepare
from tcw.compiler.measure.what_if.finished_run import FinishedRun
from tcw.compiler.protocol.commands import Rerun, TimeCalls
from tcw.compiler.protocol.stages import reached
from tcw.compiler.trace.records import CallTimes, Engine, Settings, Warned
from tcw.compiler.trace.writer import TraceWriter
from tcw.workbench.worker import measuring_hooks
from tcw.workbench.worker.backends import alone, applied, torch_compile, undo_compile
from tcw.workbench.worker.edited import edited_texts, read_as, shown_as
from tcw.workbench.worker.environment import environment
from tcw.workbench.worker.failures import Ended, failure_of
from tcw.workbench.worker.forget import beside_what_is_compiled, caches_folder, forget_compiled
from tcw.workbench.worker.inputs import mark_dynamic, named_arguments, parameters
from tcw.workbench.worker.load import Loaded, form_of
from tcw.workbench.worker.protocol import Job
from tcw.workbench.worker.session import ENGINES, Session, hand_over, load, script, takes_a_call
from tcw.workbench.worker.specification import CallSpecification, specified
from tcw.workbench.worker.start import run_record
from tcw.workbench.worker.unrecorded import host_of, unrecorded
from tcw.workbench.worker.user_code import UserCode, read_user_code
from tcw.workbench.worker.worker_recorder import WorkerRecorder

KEPT_RUNS = 4
"""Runs whose code is kept for timing: the first, and the latest others."""

Given = tuple[str | tuple[str, ...], ...]
"""The settings that decide which model and inputs a run has."""


@dataclass
class Pristine:
    """A model as it was before run 1, and how to restore it."""

    loaded: Loaded
    generators: RandomState
    """As they were after loading the file."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Files whose text in its run differs from that on disk."""
    shared: bool = False
    """It cannot be copied: a run has used this very model."""

    def copy(self) -> Loaded:
        """The model as it was, with the random generators restored."""
        self.generators.restore()
        model = self.loaded.model if self.shared else copy.deepcopy(self.loaded.model)
        # the file's optimizer is of the parameters of the model that was loaded
        return replace(self.loaded, model=model, optimizer=None)


class Driven:
    """The runs of one worker."""

    def __init__(
        self,
        recorder: WorkerRecorder,
        code: UserCode,
        calls: list[CallSpecification],
        live: Live,
        job: Job,
        rests: Callable[[Ended | None], None],
    ) -> None:
        """`rests`: called with how a run ended when the person may leave; with None when a run
        begins."""
        self.recorder = recorder
        self.code = code
        self.calls = calls
        self.live = live
        self.job = job
        self.rests = rests
        self.finished: dict[int, FinishedRun] = {}
        self._script = form_of(code, recorder.settings) == "script" and not takes_a_call(
            recorder.settings
        )
        self._changed = _stamp(code.file)
        self._aside = False
        self._caches = caches_folder()
        self._before_load = RandomState.now()
        self._pristine: dict[Given, Pristine] = {}
        """Absent where the model cannot be copied."""
        self._edits = recorder.settings.edits
        """The edits with which `code` was made."""

    def runs(self) -> Ended:
        """Make all runs, until the person ends the worker or it cannot make the next one."""
        number, rerun = self.job.first_run, self.job.rerun
        while True:
            ended = self._run(number, rerun)
            if rerun is not None and rerun.compare_with and rerun.measure and ended[0] == "ok":
                self._measure(rerun.compare_with, number, "kernel")
            if self._script:
                return ended
            again = self._next(ended)
            if again is None or _stamp(self.code.file) != self._changed:
                return ended  # a new worker reads the current file
            number, rerun = number + 1, again
            self._begin(number, again)

    def _begin(self, number: int, rerun: Rerun) -> None:
        """Forget what was compiled, and take other settings."""
        recorder = self.recorder
        recorder.begin_run(
            msgspec.structs.replace(
                rerun.settings,
                record="steps",
                file=recorder.settings.file,
                arguments=recorder.settings.arguments,
            )
        )
        run = run_record(number, recorder.settings, rerun)
        recorder.emit(run)
        forget_compiled(recorder, self._caches)
        self.live.begins(run, rerun.until)

    def _run(self, number: int, rerun: Rerun | None) -> Ended:
        recorder = self.recorder
        recorder.run = []
        recorder.live = self.live.after
        self.rests(None)
        session: Session | None = None
        try:
            with ExitStack() as stack:
                hooks = stack.enter_context(pipeline.recording(recorder, self.live.ask))
                recorder.emit(environment((*hooks, *measuring_hooks.statuses())))
                if not self._aside:
                    hand_over(recorder.settings, recorder.user_root)
                    self._aside = True
                waits = rerun is None or rerun.wait
                if self._script:
                    if waits and self._abandoned():
                        return "ok", None
                    return script(recorder, self.code)
                ended, loaded = self._load()
                if loaded is None:
                    return ended
                if (waits and self._abandoned()) or not reached("capture", recorder.settings.until):
                    return "ok", None
                session = Session(recorder, loaded)
                ended = session.calls()
                return ended
        finally:
            recorder.live = None
            if session is not None:
                self._keep(number, session, ended)
            recorder.run = None

    def _abandoned(self) -> bool:
        """Wait before the first step; True if another run is wanted instead."""
        return bool(self.live.wait("start", "before the first step"))

    def _load(self) -> tuple[Ended, Loaded | None]:
        """The model as it was before run 1: loaded, copied, or loaded again."""
        recorder = self.recorder
        settings = recorder.settings
        key = given_by(settings)
        known = self._pristine.get(key)
        try:
            self._edit(settings)
            if known is not None:
                if form_of(self.code, settings) == "script":  # it has the one wanted call
                    recorder.settings = msgspec.structs.replace(settings, profiled_call=1)
                return ("ok", None), known.copy()
            calls = (
                self.calls if settings.inputs == self.job.settings.inputs else specified(settings)
            )
        except UserError as error:
            recorder.emit(failure_of(error, error.doing or "reading the inputs", recorder))
            return ("failed", None), None
        self._before_load.restore()
        ended, loaded = load(recorder, self.code, calls)
        if loaded is not None and isinstance(loaded.model, torch.nn.Module):
            try:
                model = copy.deepcopy(loaded.model)
            except Exception as error:
                recorder.emit(
                    Warned(
                        message=f"the model cannot be copied ({type(error).__name__}: "
                        f"{str(error)[:200]}): another run loads the file again"
                    )
                )
            else:
                self._pristine[key] = Pristine(
                    replace(loaded, model=model), RandomState.now(), recorder.texts
                )
        return ended, loaded

    def _edit(self, settings: Settings) -> None:
        """Read the file again if its edits differ from those of the last run."""
        if settings.edits == self._edits:
            return
        texts = edited_texts(settings)
        code = read_user_code(self.code.file, texts.get(self.code.file))
        code.module = self.code.module
        read_as(texts, settings, self.recorder.user_root)
        self.recorder.texts = texts
        self.code, self._edits = code, settings.edits

    def _keep(self, number: int, session: Session, ended: Ended) -> None:
        recorder = self.recorder
        settings = msgspec.structs.replace(recorder.settings, overrides=dict(recorder.overrides))
        pristine = self._pristine.get(given_by(settings))
        if pristine is None:
            pristine = Pristine(session.loaded, RandomState.now(), recorder.texts, shared=True)
        self.finished[number] = FinishedRun(
            number=number,
            settings=settings,
            sets=session.loaded.sets,
            records=tuple(recorder.run or ()),
            kept=dict(recorder.kept),
            random_operations=tuple(recorder.random_operations),
            status=ended[0],
            compile_again=lambda: self._compile_again(settings, pristine),
        )
        for old in sorted(self.finished)[1 : -KEPT_RUNS + 1]:
            del self.finished[old]

    def _compile_again(self, settings: Settings, pristine: Pristine) -> dict[Engine, Model]:
        """See `FinishedRun.compile_again`."""
        silent = WorkerRecorder(TraceWriter(), settings, user_root=self.recorder.user_root)
        limit = 8 * torch._dynamo.config.recompile_limit
        made: dict[Engine, Model] = {}
        with (
            unrecorded(self.recorder),
            torch._dynamo.config.patch(recompile_limit=limit),
            applied(settings.torch_settings, pristine.loaded.names, self.recorder.user_root),
            shown_as(pristine.texts),
            pristine.loaded.around(),
            ExitStack() as stack,
        ):
            stack.enter_context(pipeline.recording(silent))
            for engine in ENGINES[settings.engine]:
                loaded = pristine.copy()
                original = original_of(loaded.model)
                undo_compile(original)
                made[engine] = torch_compile(
                    original,
                    backend=alone(settings, engine),
                    fullgraph=settings.fullgraph,
                    dynamic=settings.dynamic,
                )
                beside_what_is_compiled()
                signature = parameters(original)
                for inputs in loaded.sets:
                    run = prepare(made[engine], inputs, settings.grad)
                    named = named_arguments(signature, run.positional, run.keyword)
                    mark_dynamic(settings.mark_dynamic, named)
                    run()
        return made

    def _next(self, ended: Ended) -> Rerun | None:
        """Wait at the end of a run, measuring on request; return the next run to make."""
        self.rests(ended)
        why = "the run is over" if ended[0] == "ok" else f"the run {ended[0]}"
        again: Rerun | None = None
        while again is None:
            for command in self.live.wait("end", why):
                if isinstance(command, Rerun):
                    again = command
                elif isinstance(command, TimeCalls):
                    self._time(command.run, command.rounds)
                else:
                    self._measure(command.base, command.run, command.scope)
        return again

    def _time(self, number: int, rounds: int) -> None:
        recorder = self.recorder
        if number not in self.finished:
            recorder.emit(CallTimes(run=number, reason=f"run {number} is not in this process"))
            return
        with Safely(recorder, "timing calls"):
            from tcw.compiler.measure.what_if.turn import time_calls

            time_calls(host_of(recorder), self.finished[number], rounds)

    def _measure(self, base: int, run: int, scope: Literal["kernel", "graph", "call"]) -> None:
        recorder = self.recorder
        for number in (base, run):
            if number not in self.finished:
                recorder.emit(
                    Warned(
                        message=f"run {number} is no longer in this process: nothing is "
                        "measured against it",
                        asked=True,
                    )
                )
                return
        with Safely(recorder, "a comparison of two runs"):
            from tcw.compiler.measure.what_if.compare import compare

            runs = self.finished[base], self.finished[run]
            compare(host_of(recorder), *runs, scope, measuring_hooks.missing())


def given_by(settings: Settings) -> Given:
    return settings.model, settings.inputs, settings.edits, settings.as_tensors


def _stamp(file: str) -> tuple[int, int]:
    """Tells whether a file has changed."""
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
