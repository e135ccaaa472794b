"""The front end's side of a recording: starts the worker, passes records on, and cleans up.

It imports no torch. The worker writes its records to the trace file itself, so a front end that
dies loses nothing; what the front end adds is the program's output, and the end.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from compiler.trace.reader import TraceDecoder
from compiler.trace.records import AnyRecord, End, Record, Settings, Start
from compiler.trace.writer import TraceWriter
from workbench.worker.autopsy import Autopsy, Death
from workbench.worker.guardian import RECORDING, kill_marked
from workbench.worker.output import OutputStream
from workbench.worker.pipes import Pipes
from workbench.worker.protocol import DUMP_SIGNAL, Job
from workbench.worker.streams import RecordStream

OnRecord = Callable[[AnyRecord], None]
Stopped = Literal["timeout", "interrupted"]

_DUMP_SECONDS = 0.4
"""How long a worker that is stopped has to write where it is."""
_QUIET_SECONDS = 0.05
"""A dump comes in many small writes, a thread's header before its frames; then it is whole."""
_DRAIN_SECONDS = 8.0
"""How long after its end the pipes may stay open; the guardian gives up after five seconds."""
_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 18


def record(
    settings: Settings,
    *,
    trace: Path | None,
    on_record: OnRecord,
    stop: threading.Event | None = None,
) -> End:
    """Record `settings.file` in a worker process; answer how that ended.

    `on_record` gets every record, in the calling thread, the end record last. `trace` is written
    anew; None writes nothing to disk. Ctrl-C, or `stop` being set by another thread, ends the
    recording as interrupted. Whatever `on_record` raises comes out, and the worker is gone.
    Raises OSError where the trace file cannot be created.
    """
    return _Recording(settings, trace, on_record, stop).run()


class _Recording:
    def __init__(
        self,
        settings: Settings,
        trace: Path | None,
        on_record: OnRecord,
        stop: threading.Event | None,
    ) -> None:
        self.settings = settings
        self.on_record = on_record
        self.stop = stop
        self.started = time.monotonic()
        self.trace = -1
        if trace is not None:
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
            self.trace = os.open(trace, flags, 0o644)
        self.file = RecordStream(self.trace, -1)
        self.writer = TraceWriter(self.file, started=self.started)
        self.decoder = TraceDecoder()
        self.autopsy = Autopsy(settings)
        self.selector = selectors.DefaultSelector()
        self.mark = uuid.uuid4().hex
        self.caches: Path | None = None
        self.worker = 0
        self.lifeline = -1
        self.end: End | None = None
        self.status = b""
        self.faults = b""
        self.stopped: Stopped | None = None
        self.outputs: dict[int, OutputStream] = {}

    def run(self) -> End:
        process = None
        try:
            process = self._start()
            self._pump_until_stopped()
            return self._finish()
        finally:
            self._let_go()
            if process is not None:
                self._reap(process)
            for key in list(self.selector.get_map().values()):
                os.close(key.fd)
            self.selector.close()
            if self.trace >= 0:
                os.close(self.trace)
            if self.caches is not None:
                shutil.rmtree(self.caches, ignore_errors=True)

    def _start(self) -> subprocess.Popen[bytes]:
        if not self.settings.cached:
            self.caches = Path(tempfile.mkdtemp(prefix="tcw-"))
        read_commands, self.commands = os.pipe()
        read_lifeline, self.lifeline = os.pipe()
        records, write_records = os.pipe()
        faults, write_faults = os.pipe()
        status, write_status = os.pipe()
        pipes = Pipes(
            read_commands, write_records, write_faults, read_lifeline, write_status, self.trace
        )
        door = Path(__file__).parents[2] / "tcw.py"
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", str(door), "--worker", "record", *pipes.arguments()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, RECORDING: self.mark, **_fresh_caches(self.caches)},
                pass_fds=pipes.inherited(),
                start_new_session=True,
            )
        finally:
            for number in (read_commands, read_lifeline, write_records, write_faults, write_status):
                os.close(number)
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = os.dup(process.stdout.fileno()), os.dup(process.stderr.fileno())
        process.stdout.close()
        process.stderr.close()
        self.outputs[out] = OutputStream("stdout", self._emit)
        self.outputs[err] = OutputStream("stderr", self._emit)
        for number, handler in (
            (records, self._read_records),
            (out, self.outputs[out].feed),
            (err, self.outputs[err].feed),
            (faults, self._read_faults),
            (status, self._read_status),
        ):
            _enlarge(number)
            self.selector.register(number, selectors.EVENT_READ, handler)
        job = Job.of(self.settings, self.started)
        with contextlib.suppress(BrokenPipeError):  # it died at once; its status says how
            os.write(self.commands, msgspec.json.encode(job) + b"\n")
        return process

    def _pump_until_stopped(self) -> None:
        """Pass on what comes until the worker is gone, or has to go."""
        limit = self.settings.timeout
        deadline = None if limit is None else self.started + limit
        try:
            if self._pump(deadline):
                return
            self.stopped = "interrupted" if self.stop and self.stop.is_set() else "timeout"
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        if self.end is not None:
            return
        if self.worker:
            with contextlib.suppress(OSError):
                os.kill(self.worker, DUMP_SIGNAL)
            self._pump(time.monotonic() + _DUMP_SECONDS, until_dump=True)

    def _finish(self) -> End:
        self._let_go()
        self._pump(time.monotonic() + _DRAIN_SECONDS, stoppable=False)
        for output in self.outputs.values():
            output.close()
        end = self.end
        if end is None:
            death = Death(
                status=self.status.decode("ascii", "replace"),
                dump=self.faults.decode("utf-8", "replace"),
                stopped=self.stopped,
                seconds=self.writer.now(),
            )
            self._close_partial_line()
            for made in self.autopsy.records(death):
                if isinstance(made, End):
                    end = made
                else:
                    self._emit(made)
        assert end is not None
        if self.file.lost and self.file.lost not in end.reason:
            reason = "; ".join(filter(None, (end.reason, self.file.lost)))
            end = msgspec.structs.replace(end, reason=reason)
        self._emit(end)
        return end

    def _pump(
        self, deadline: float | None, *, stoppable: bool = True, until_dump: bool = False
    ) -> bool:
        """Read from all pipes until they end (True) or the deadline has come (False)."""
        while self.selector.get_map():
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return False
            if stoppable and not until_dump and self.stop is not None and self.stop.is_set():
                return False
            waits = [output.due(now) for output in self.outputs.values()]
            if deadline is not None:
                waits.append(deadline - now)
            if self.stop is not None:
                waits.append(0.1)
            dumped = until_dump and self.faults.endswith(b"\n") and b"Current thread" in self.faults
            if dumped:
                waits.append(_QUIET_SECONDS)
            due = [wait for wait in waits if wait is not None]
            ready = self.selector.select(max(0.0, min(due)) if due else None)
            if dumped and not ready:
                return False
            for key, _ in ready:
                data = os.read(key.fd, _READ_BYTES)
                if data:
                    key.data(data)
                else:
                    self.selector.unregister(key.fd)
                    os.close(key.fd)
            now = time.monotonic()
            for output in self.outputs.values():
                output.flush_if_due(now)
        return True

    def _read_records(self, data: bytes) -> None:
        for found in self.decoder.feed(data):
            if isinstance(found, End):
                self.end = found
                continue
            if isinstance(found, Start):
                self.worker = found.pid
            self.autopsy.see(found)
            self.on_record(found)

    def _read_faults(self, data: bytes) -> None:
        self.faults = (self.faults + data)[-(1 << 20) :]

    def _read_status(self, data: bytes) -> None:
        self.status += data

    def _emit(self, made: Record) -> None:
        """Add a record of the front end's own."""
        self.writer.emit(made)
        self.on_record(made)  # type: ignore[arg-type]

    def _close_partial_line(self) -> None:
        """A worker that was killed while it wrote has left a line without an end."""
        if self.trace >= 0:
            size = os.fstat(self.trace).st_size
            if size and os.pread(self.trace, 1, size - 1) != b"\n":
                self.file(b"\n")

    def _let_go(self) -> None:
        """The end of the lifeline makes the guardian kill every process of the recording."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1
            os.close(self.commands)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        while True:
            try:
                process.wait(_DRAIN_SECONDS)
            except KeyboardInterrupt:
                continue
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            break
        if not self.status and self.worker:
            # The guardian itself was killed; what it watched has to go without it.
            with contextlib.suppress(OSError):
                os.killpg(self.worker, signal.SIGKILL)
            kill_marked(self.mark)


def _fresh_caches(folder: Path | None) -> dict[str, str]:
    """Where torch and Triton shall keep what they compile, in their own variables."""
    if folder is None:
        return {}
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TCW_CACHE_DIR": str(folder / "tcw"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }


def _enlarge(number: int) -> None:
    """A larger pipe, so that the worker seldom waits for the front end."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
