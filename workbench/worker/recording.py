"""One recording from its job to its end record, in the worker process."""

from __future__ import annotations

import faulthandler
import os
import sys
from typing import NoReturn

import msgspec

from tcw.compiler.control.live import Live
from tcw.compiler.control.user_error import UserError
from tcw.compiler.trace.records import End, Failure, Progress, Warned
from tcw.compiler.trace.writer import TraceWriter
from tcw.workbench.worker.blame import of_recording
from tcw.workbench.worker.edited import edited_texts, read_as
from tcw.workbench.worker.exits import (
    RECORDS_CLOSED,
    flush_output,
    leave,
    wait_for_end,
    watch_os_exit,
)
from tcw.workbench.worker.failures import NO_TORCH, Ended, failure_of
from tcw.workbench.worker.pipes import Pipes
from tcw.workbench.worker.protocol import DUMP_SIGNAL, Job
from tcw.workbench.worker.specification import specified
from tcw.workbench.worker.start import run_record, start_of
from tcw.workbench.worker.trace_file import RecordStream
from tcw.workbench.worker.user_code import read_user_code
from tcw.workbench.worker.worker_recorder import WorkerRecorder


def record(pipes: Pipes) -> NoReturn:
    """Read the job, record, write the end record, and end this process."""
    line, unread = _first_line(pipes.commands)
    job = msgspec.json.decode(line, type=Job)
    stream = RecordStream(pipes.trace, pipes.records)
    writer = TraceWriter(stream, started=job.started)
    aside = TraceWriter(stream.stream, started=job.started)
    stream.on_lost = lambda words: aside.emit(
        Warned(message=f"{words}: it ends here; what follows is only on the screen", asked=True)
    )
    settings = job.exact_settings()
    faulthandler.enable(pipes.faults)
    faulthandler.register(DUMP_SIGNAL, pipes.faults, all_threads=True)
    for standard in (sys.stdout, sys.stderr):
        # As on a terminal: what was printed is out before anything else can fail.
        standard.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    start = start_of(settings, job.started)
    root = os.path.dirname(os.path.abspath(settings.file))
    recorder = WorkerRecorder(writer, settings, user_root=root)
    resting: list[Ended] = []

    kept: list[int] = []

    def end(outcome: Ended) -> NoReturn:
        """Write the end record and end this process, from any thread; not before fixes are
        tried."""
        flush_output()
        writer.hold()
        # It goes to the front end alone, which appends it when all output is in the trace.
        TraceWriter(stream.stream, started=job.started).emit(
            End(
                status=outcome[0],
                seconds=round(writer.now(), 6),
                calls=recorder.calls,
                exit_code=outcome[1],
                reason=stream.lost,
            )
        )
        for number in kept:
            wait_for_end(number)
        leave(RECORDS_CLOSED if stream.pipe_lost else 0)

    if job.driven:
        run = run_record(job.first_run, settings, job.rerun)
        for made in (start, run) if job.first_run == 1 else (run, start):
            recorder.emit(made)
        live = Live(
            recorder,
            pipes.commands,
            unread=unread,
            stop=lambda: end(resting[0] if resting else ("interrupted", None)),
            gone=lambda: leave(1),
        )
        live.listen()
        live.begins(run, job.rerun.until if job.rerun is not None else None)
    else:
        recorder.emit(start)
        live = None
    unwatch = watch_os_exit(recorder)
    try:
        outcome = _perform(recorder, job, live, resting, pipes if job.tries else None, kept)
    except BaseException as error:  # nothing may leave this process as a traceback of ours
        blame = of_recording(error)
        doing = "importing torch" if blame.culprit == "torch" else "recording"
        recorder.emit(failure_of(error, doing, recorder, blame=blame))
        outcome = "failed", None
    unwatch()
    end(outcome)


def _perform(
    recorder: WorkerRecorder,
    job: Job,
    live: Live | None,
    resting: list[Ended],
    trials: Pipes | None,
    kept: list[int],
) -> Ended:
    """`trials`: where a process that tries fixes gets its commands; what is to be waited for at the
    end is added to `kept`."""
    settings = recorder.settings
    recorder.emit(Progress(stage="load", activity=f"reading {os.path.basename(settings.file)}"))
    try:
        calls = specified(settings)
        recorder.texts = edited_texts(settings)
        code = read_user_code(settings.file, recorder.texts.get(os.path.abspath(settings.file)))
    except UserError as error:
        if error.location is not None:
            recorder.source(error.location.file)
        recorder.emit(failure_of(error, "reading the file", recorder))
        return "failed", None
    read_as(recorder.texts, settings, recorder.user_root)
    recorder.source(code.file)
    recorder.emit(Progress(stage="load", activity="importing torch"))
    try:
        # Only now import torch, and with it everything of ours that a recording needs.
        from tcw.workbench.worker import session
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        broken = f"torch in {sys.executable} cannot be imported: install it again"
        recorder.emit(
            Failure(
                doing="importing torch",
                type=type(error).__name__,
                message=str(error),
                hint=NO_TORCH if error.name == "torch" else broken,
            )
        )
        return "failed", None
    if trials is not None:
        from tcw.workbench.worker import trials as trials_process

        kept.append(trials_process.kept_aside(trials, job))
    if live is None:
        return session.run(recorder, code, calls)
    from tcw.workbench.worker.driven import Driven

    def rests(ended: Ended | None) -> None:
        """Tell the front end that a run is over and the person may leave (or that the next one
        begins)."""
        resting[:] = [] if ended is None else [ended]

    return Driven(recorder, code, calls, live, job, rests).runs()


def _first_line(descriptor: int) -> tuple[bytes, bytes]:
    """The job, and the bytes read beyond it."""
    data = b""
    while b"\n" not in data:
        part = os.read(descriptor, 65536)
        if not part:
            leave(1)  # the front end is gone
        data += part
    line, _, rest = data.partition(b"\n")
    return line, rest
