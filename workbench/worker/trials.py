"""Trials of fixes, each in a process of its own.

A process that has torch, but nothing of the user's, is set aside before the user's file is loaded.
After the recording it imports what that file imports from installed packages, and forks for each
trial: a trial starts as the recording did, with the same random numbers, and leaves nothing behind.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import os
import select
import signal
import sys
import time
import warnings
from typing import NoReturn

import msgspec
import torch

from tcw.compiler.graphs.lines import is_users_own
from tcw.compiler.protocol.commands import AnyCommand, Try
from tcw.compiler.trace.records import Settings, Waiting
from tcw.compiler.trace.writer import TraceWriter
from tcw.workbench.worker import session
from tcw.workbench.worker.edited import edited_texts, read_as
from tcw.workbench.worker.exits import leave
from tcw.workbench.worker.failures import failure_of
from tcw.workbench.worker.forget import beside_what_is_compiled
from tcw.workbench.worker.guardian import die_with
from tcw.workbench.worker.load import form_of
from tcw.workbench.worker.pipes import Pipes
from tcw.workbench.worker.protocol import Job
from tcw.workbench.worker.results import CallResults, of_compiled_calls
from tcw.workbench.worker.specification import specified
from tcw.workbench.worker.start import start_of
from tcw.workbench.worker.trace_file import RecordStream
from tcw.workbench.worker.user_code import read_user_code
from tcw.workbench.worker.worker_recorder import WorkerRecorder

_READ_BYTES = 1 << 16
_ADOPTED_SECONDS = 2.0
"""How long a process may take to become its guardian's."""


def kept_aside(pipes: Pipes, job: Job) -> int:
    """Start the process for trials. It is no child of this one, whose program may wait for all its
    children. Returns the reading end of a pipe that it holds open."""
    guardian = os.getppid()
    ended, held = os.pipe()
    child = _fork()
    if not child:
        if not _fork():
            os.close(ended)
            _serve(pipes, job, guardian)
        leave(0)
    os.close(held)
    os.waitpid(child, 0)
    return ended


def _fork() -> int:
    """Fork, though libraries may have threads: those wait for work, and hold no lock of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _serve(pipes: Pipes, job: Job, guardian: int) -> NoReturn:
    """Read commands, make a trial of each, until there are no more."""
    try:
        deadline = time.monotonic() + _ADOPTED_SECONDS
        while os.getppid() != guardian and time.monotonic() < deadline:
            time.sleep(0.001)
        die_with(guardian)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (1, 2):
            os.dup2(null, standard)
        results = os.memfd_create("results")
        decoder = msgspec.json.Decoder(AnyCommand)
        unread = b""
        imported = False
        while data := os.read(pipes.commands, _READ_BYTES):
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                command = decoder.decode(line)
                if not isinstance(command, Try):
                    leave(0)
                if not imported:
                    imported = True
                    _warm_up(job.exact_settings())
                _try(command, pipes, job, results)
    finally:
        leave(0)


def _warm_up(settings: Settings) -> None:
    """Do what each trial would do first: import what the user's file imports from installed
    packages, and what torch imports only in the first compile.

    Not with a torch that knows CUDA: both may ask how many GPUs there are, after which CUDA refuses
    to work in a forked process.
    """
    if torch.version.cuda is not None or torch.version.hip is not None:
        return
    torch.compile(torch.neg, backend="eager")(torch.zeros(1))
    torch._dynamo.reset()
    beside_what_is_compiled()
    root = os.path.dirname(os.path.abspath(settings.file))
    try:
        with open(settings.file, "rb") as stream:
            tree = ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    for name in names:
        with contextlib.suppress(BaseException):
            spec = importlib.util.find_spec(name.partition(".")[0])
            if spec is not None and spec.origin and not is_users_own(spec.origin, root):
                importlib.import_module(name)


def _try(command: Try, pipes: Pipes, job: Job, results: int) -> None:
    """One trial, given up after its seconds; the record that it is over comes last."""
    began = time.monotonic()
    child = _fork()
    if not child:
        _trial(command, pipes, job, results)
    watched = os.pidfd_open(child)
    ready, _, _ = select.select([watched], [], [], command.seconds)
    os.close(watched)
    why = ""
    if not ready:
        why = f"it took more than {command.seconds:.0f} s"
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not why and status:
        signalled = os.WIFSIGNALED(status)
        what = signal.Signals(os.WTERMSIG(status)).name if signalled else "it ended early"
        why = f"{what} after {time.monotonic() - began:.1f} s"
    writer = TraceWriter(RecordStream(-1, pipes.records), started=job.started)
    writer.emit(Waiting(number=command.number, kind="end", why=why, stage="run", lost=bool(why)))


def _trial(command: Try, pipes: Pipes, job: Job, results: int) -> NoReturn:
    parent = os.getppid()
    os.setpgid(0, 0)
    die_with(parent)
    settings = msgspec.structs.replace(
        command.settings,
        file=os.fsdecode(job.file),
        arguments=tuple(os.fsdecode(argument) for argument in job.arguments),
    )
    root = os.path.dirname(os.path.abspath(settings.file))
    writer = TraceWriter(RecordStream(-1, pipes.records), started=job.started)
    recorder = WorkerRecorder(writer, settings, user_root=root)
    recorder.emit(start_of(settings, job.started))
    observed = recorder.results = CallResults()
    try:
        _make(recorder, command, observed, results)
    except BaseException as error:
        recorder.emit(failure_of(error, "trying a fix", recorder))
    leave(0)


def _make(recorder: WorkerRecorder, command: Try, observed: CallResults, results: int) -> None:
    settings = recorder.settings
    calls = specified(settings)
    recorder.texts = edited_texts(settings)
    code = read_user_code(settings.file, recorder.texts.get(os.path.abspath(settings.file)))
    recorder.source(code.file)
    read_as(recorder.texts, settings, recorder.user_root)
    script = form_of(code, settings) == "script" and not session.takes_a_call(settings)
    if command.eager:
        torch.compiler.set_stance("force_eager")
    with of_compiled_calls(observed) if script else contextlib.nullcontext():
        ended = session.run(recorder, code, calls)
    module = sys.modules.get(code.module or "__main__")
    if ended[0] != "ok" or module is None:
        return
    with torch.no_grad():
        observed.add_state(vars(module))
    if command.number == 1:
        observed.write(results)
    elif (numerics := observed.against(results)) is not None:
        recorder.emit(numerics)
