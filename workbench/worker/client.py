"""The front end's side: `record` makes a recording, a `Driver` one that a person drives. No
torch."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from tcw.compiler.protocol.commands import AnyCommand, Breakpoint, Rerun, SetBreakpoints, Stop, Try
from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Failure,
    Note,
    Record,
    Run,
    Settings,
    Stage,
    StageStart,
    Waiting,
)
from tcw.workbench.worker.blame import Blame, machine_fault
from tcw.workbench.worker.child import Child
from tcw.workbench.worker.protocol import Job, plain
from tcw.workbench.worker.trace_file import OnRecord, TraceFile

_LATE_SECONDS = 2.0
"""How much longer than its seconds a trial may take to say that it is over."""
_STOP_SECONDS = 3.0
"""How long a stopping worker has to write its end."""


def record(
    settings: Settings,
    *,
    trace: Path | None,
    on_record: OnRecord,
    stop: threading.Event | None = None,
    then: Callable[[End], Iterable[Record]] | None = None,
    tries: Callable[[Trials], Iterable[Record]] | None = None,
    python: str = "",
) -> End:
    """Record `settings.file` in a worker process and return how it ended.

    `on_record` gets every record, in the calling thread, the end record last. `trace` is
    overwritten; None writes nothing to disk. Ctrl-C, or another thread that sets `stop`, ends the
    recording as interrupted. What `on_record` raises is passed on, after the worker has been ended.

    `then` makes further records after the worker's end: it gets the worker's end record, and the
    records that it returns are written before that one. `tries` makes records by trials, after what
    is recorded; not if the worker died. `python`: the worker's interpreter, with
    its own torch; "" for this one.

    Raises OSError if the trace file cannot be created.
    """
    file = TraceFile(trace, on_record)
    try:
        try:
            job = Job.of(settings, file.started, tries=tries is not None)
            child = Child(job, file, stop, python)
        except OSError as error:
            file.emit(not_started(error))
            return _ended(file, End(status="failed", seconds=file.writer.now()))
        try:
            _wait(child, settings, file, stop, until_end=tries is not None)
            if tries is not None and child.end is not None and child.stopped is None:
                with contextlib.suppress(KeyboardInterrupt):
                    for tried in tries(Trials(child)):
                        file.emit(tried)
                child.send(Stop())
            failures, end = child.finish()
            for failure in failures:
                file.emit(failure)
        finally:
            child.close()
        for more in then(end) if then is not None else ():
            file.emit(more)
        return _ended(file, end)
    finally:
        file.close()


def not_started(error: OSError) -> Failure:
    """A worker that this machine cannot start: no temporary folder, process or descriptor."""
    blame = machine_fault(error) or Blame("machine", hint="TMPDIR names the temporary folder")
    return Failure(
        doing="starting the worker",
        type=type(error).__name__,
        message=str(error),
        culprit=blame.culprit,
        hint=blame.hint,
    )


class Trials:
    """Runs the recorded file again with other settings, each time in a process of its own."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._gone = False

    def run(
        self, number: int, settings: Settings, seconds: float, eager: bool = False
    ) -> list[AnyRecord]:
        """The records of one trial; the last one is a `Waiting`, whose `why` says what cut it
        short. `number`, `eager`: see `Try`."""
        records: list[AnyRecord] = []
        self._child.read_on(records.append)
        if not self._gone:
            command = Try(number=number, settings=plain(settings), seconds=seconds, eager=eager)
            self._child.send(command)
            last = time.monotonic() + seconds + _LATE_SECONDS
            self._gone = not self._child.wait(last, until=lambda: _is_over(records))
        if not _is_over(records):
            self._gone = True
            records.append(
                Waiting(number=number, kind="end", why="its process ended", stage="run", lost=True)
            )
        return records


def _is_over(records: list[AnyRecord]) -> bool:
    return bool(records) and isinstance(records[-1], Waiting)


def _wait(
    child: Child,
    settings: Settings,
    file: TraceFile,
    stop: threading.Event | None,
    until_end: bool = False,
) -> None:
    """Pass on its output until the worker is gone, or has to go; or with `until_end` until its
    end record is there."""
    limit = settings.timeout
    deadline = None if limit is None else file.started + limit
    try:
        if child.wait(deadline, until=lambda: until_end and child.end is not None):
            return
        child.stopped = "interrupted" if stop and stop.is_set() else "timeout"
    except KeyboardInterrupt:
        child.stopped = "interrupted"
    child.dump()


def _ended(file: TraceFile, end: End) -> End:
    """Write the end record to the trace."""
    lost = file.file.lost
    if lost and lost not in end.reason:
        end = msgspec.structs.replace(end, reason="; ".join(filter(None, (end.reason, lost))))
    end = msgspec.structs.replace(end, lines=file.lines())
    file.emit(end)
    return end


class Driver:
    """A recording that a person drives, on a thread of its own.

    Its worker loads the file and waits (`Waiting`, kind `start`). `send` sends it a command from
    any thread without waiting. `on_record` is called in the driver's
    thread with every record; the `End` comes last, and only after `stop`.

    A worker that ends (a script that is over) or dies leaves a `Waiting` of kind `end`. A `Rerun`
    after it starts a new worker on the same trace.
    """

    def __init__(
        self,
        settings: Settings,
        trace: Path | None,
        on_record: OnRecord,
        breakpoints: Sequence[Breakpoint] = (),
        first: Rerun | None = None,
        python: str = "",
    ) -> None:
        """Start the recording. `trace` is overwritten; None writes nothing to disk. `first`: how
        run 1 begins, if it is not to wait before its first step. `python`: the worker's
        interpreter, with its own torch; "" for this one. Raises OSError if the trace file cannot be
        created."""
        self.end: End | None = None
        """How it ended, once it has."""
        self.error: BaseException | None = None
        """What `on_record` raised, which ended the recording."""
        self._settings = msgspec.structs.replace(settings, record="steps", timeout=None)
        self._file = TraceFile(trace, self._see)
        self._on_record = on_record
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._stopping = threading.Event()
        self._breakpoints = SetBreakpoints(breakpoints=tuple(breakpoints))
        self._first = first
        self._python = python
        self._rerun: Rerun | None = None
        """Sent, but no run has begun for it."""
        self._idle: queue.SimpleQueue[AnyCommand] = queue.SimpleQueue()
        """Commands that were sent while there was no worker."""
        self._run = 0
        self._waits = 0
        self._stage: Stage = "load"
        self._ended = threading.Event()
        self._closing = threading.RLock()
        threading.Thread(target=self._drive, name="tcw driver", daemon=True).start()

    def send(self, command: AnyCommand) -> None:
        """Send the worker a command, from any thread; never waits."""
        if isinstance(command, Stop):
            self.stop()
            return
        with self._lock:
            if isinstance(command, SetBreakpoints):
                self._breakpoints = command
            elif isinstance(command, Rerun):
                command = msgspec.structs.replace(command, settings=plain(command.settings))
                self._rerun = command
            if self._child is None:
                self._idle.put(command)
            else:
                self._child.send(command)

    def note(self, note: Note) -> None:
        """Write a reader's note to the trace; `on_record` gets it in the calling thread. Does
        nothing after the end of the recording."""
        with self._closing:
            if not self._ended.is_set():
                self._file.emit(note)

    def stop(self) -> None:
        """End the recording and its worker; `join` waits for the end."""
        with self._lock:
            if self._stopping.is_set():
                return
            self._stopping.set()
            self._idle.put(Stop())
            if self._child is not None:
                self._child.send(Stop())

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end of the recording and its processes; False at the timeout."""
        return self._ended.wait(timeout)

    def _drive(self) -> None:
        end = End(status="interrupted", seconds=0.0)
        try:
            job = Job.of(self._settings, self._file.started, driven=True, rerun=self._first)
            while True:
                end = self._work(job)
                again = None if self._stopping.is_set() else self._next_run()
                if again is None:
                    break
                settings = msgspec.structs.replace(
                    again.settings,
                    record="steps",
                    timeout=None,
                    file=self._settings.file,
                    arguments=self._settings.arguments,
                )
                job = Job.of(
                    settings, self._file.started, driven=True, first_run=self._run + 1, rerun=again
                )
        except BaseException as error:
            self.error = error
        finally:
            with self._closing:
                with contextlib.suppress(Exception):
                    self.end = _ended(self._file, end)
                self._file.close()
                self._ended.set()

    def _work(self, job: Job) -> End:
        """One worker, from its start to its end."""
        try:
            child = Child(job, self._file, self._stopping, self._python)
        except OSError as error:
            self._file.emit(not_started(error))
            end = End(status="failed", seconds=self._file.writer.now())
            self._say_that_it_is_over(end)
            return end
        try:
            with self._lock:
                self._child = child
                child.send(self._breakpoints)
                if self._stopping.is_set():
                    child.send(Stop())
            if not child.wait():
                # told to stop: give it a moment to do so by itself
                child.stop = None
                if not child.wait(time.monotonic() + _STOP_SECONDS):
                    child.stopped = "interrupted"
            with self._lock:
                self._child = None
            failures, end = child.finish()
            for failure in failures if not self._stopping.is_set() else ():
                self._file.emit(failure)
        finally:
            with self._lock:
                self._child = None
            child.close()
        if not self._stopping.is_set() and self._rerun is None:
            self._say_that_it_is_over(end)
        return end

    def _say_that_it_is_over(self, end: End) -> None:
        lost = end.status != "ok"
        why = f"the worker is gone: {end.status}" if lost else "the run is over"
        self._file.emit(
            Waiting(
                number=self._waits + 1,
                kind="end",
                why="; ".join(filter(None, (why, end.reason))),
                stage=self._stage,
                lost=lost,
            )
        )

    def _next_run(self) -> Rerun | None:
        """What to run next in a new worker; None for nothing."""
        while True:
            with self._lock:
                again, self._rerun = self._rerun, None
            if again is not None:
                return again
            if isinstance(self._idle.get(), Stop):
                return None

    def _see(self, record: AnyRecord) -> None:
        """Take a record of the worker or of the front end."""
        if isinstance(record, Run):
            self._run = record.number
            self._waits = 0
            with self._lock:
                self._rerun = None
        elif isinstance(record, Waiting):
            self._waits, self._stage = record.number, record.stage
        elif isinstance(record, StageStart):
            self._stage = record.stage
        self._on_record(record)
