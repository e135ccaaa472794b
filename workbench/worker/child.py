"""A worker process as the front end holds it: its pipes, its output, its death. No torch.

The worker writes its records to the trace file itself, so a front end that dies loses nothing.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable

import msgspec

from tcw.compiler.protocol.commands import AnyCommand
from tcw.compiler.trace.reader import TraceDecoder
from tcw.compiler.trace.records import AnyRecord, End, Failure, Record, Start
from tcw.workbench import own_command
from tcw.workbench.worker.autopsy import Autopsy, Stopped
from tcw.workbench.worker.guardian import RECORDING, kill_marked, new_caches, remove_caches
from tcw.workbench.worker.output import OutputStream
from tcw.workbench.worker.pipes import Pipes
from tcw.workbench.worker.protocol import DUMP_SIGNAL, Job
from tcw.workbench.worker.trace_file import TraceFile

_DUMP_SECONDS = 0.4
"""How long a worker that is stopped has to write where it is."""
_QUIET_SECONDS = 0.05
"""Silence after which a dump is whole: it comes in many small writes, a thread's header before
its frames."""
_DRAIN_SECONDS = 8.0
"""How long its pipes may stay open after its end; the guardian gives up after five seconds."""
_UNGUARDED_SECONDS = 0.05
"""How often to look for what the killed guardian watched: between fork and exec a process does not
yet show which recording it belongs to."""
_PIPE_BYTES = 1 << 20
_READ_BYTES = 1 << 18


def start_process(
    command: list[str], environment: dict[str, str], inherited: list[int]
) -> subprocess.Popen[bytes]:
    """Start a process of ours in a session of its own. It inherits the descriptors `inherited`
    under their numbers; its output comes through pipes."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        pass_fds=inherited,
        start_new_session=True,
    )


class Child:
    """One worker: started by the constructor, read by `wait`, gone after `close`."""

    def __init__(
        self, job: Job, trace: TraceFile, stop: threading.Event | None = None, python: str = ""
    ) -> None:
        """`python`: the worker's interpreter, with its own torch; "" for this one."""
        self.trace = trace
        self.stop = stop
        """Ends `wait`; set by another thread."""
        self.end: End | None = None
        """The worker's own end record, once received. It is not in the trace."""
        self.on_record = trace.on_record
        """Gets the worker's records, in the thread that waits."""
        self.stopped: Stopped | None = None
        self._python = python
        self._settings = job.exact_settings()
        self._decoder = TraceDecoder()
        self._autopsy = Autopsy(self._settings)
        self._selector = selectors.DefaultSelector()
        self._mark = uuid.uuid4().hex
        self._caches = ""
        """The folder that the guardian removes."""
        self._process: subprocess.Popen[bytes] | None = None
        self._worker = 0
        self._lifeline = -1
        self._commands = -1
        self._outgoing = bytearray()
        self._outgoing_lock = threading.Lock()
        self._woken, self._wake = os.pipe()
        for number in (self._woken, self._wake):
            os.set_blocking(number, False)
        self._status = b""
        self._unguarded: float | None = None
        """When the guardian was found killed, on the monotonic clock."""
        self._faults = b""
        self._outputs: dict[int, OutputStream] = {}
        try:
            self._process = self._start(job)
        except OSError:
            self.close()
            raise

    def send(self, command: AnyCommand) -> None:
        """Send the worker a command, from any thread; never blocks on a full pipe."""
        with self._outgoing_lock:
            self._outgoing += msgspec.json.encode(command) + b"\n"
        with contextlib.suppress(OSError):
            os.write(self._wake, b"\0")

    def read_on(self, on_record: Callable[[AnyRecord], None]) -> None:
        """Pass records that come after its end record, as of a recording of their own."""
        self._decoder = TraceDecoder()
        self.on_record = on_record

    def dump(self) -> None:
        """Ask the worker where it is, unless it has ended."""
        if self.end is None and self._worker:
            with contextlib.suppress(OSError):
                os.kill(self._worker, DUMP_SIGNAL)
            self.wait(time.monotonic() + _DUMP_SECONDS, until_dump=True)

    def finish(self) -> tuple[list[Failure], End]:
        """Release the worker, read the rest, and return how it ended: the worker's own end record,
        or what is known of its death."""
        self._release()
        self.wait(time.monotonic() + _DRAIN_SECONDS, stoppable=False)
        for output in self._outputs.values():
            output.close()
        if self.end is not None:
            return [], self.end
        self.trace.close_partial_line()
        status, dump = (
            self._status.decode("ascii", "replace"),
            self._faults.decode(errors="replace"),
        )
        return self._autopsy.found(status, dump, self.stopped, self.trace.writer.now())

    def close(self) -> None:
        """Remove all that is left of it."""
        self._release()
        if self._process is not None:
            self._reap(self._process)
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()
        with self._outgoing_lock:
            os.close(self._wake)
            self._wake = -1
        remove_caches(self._caches)  # the guardian may have been killed

    def _start(self, job: Job) -> subprocess.Popen[bytes]:
        if not self._settings.cached:
            self._caches = new_caches(self._mark)
        read_commands, self._commands = os.pipe()
        read_lifeline, self._lifeline = os.pipe()
        records, write_records = os.pipe()
        faults, write_faults = os.pipe()
        status, write_status = os.pipe()
        pipes = Pipes(
            read_commands,
            write_records,
            write_faults,
            read_lifeline,
            write_status,
            self.trace.descriptor,
        )
        try:
            words = ("--worker", "record", self._caches, *map(str, pipes))
            process = start_process(
                own_command(*words, python=self._python),
                {**os.environ, RECORDING: self._mark, **_fresh_caches(self._caches)},
                [number for number in pipes if number >= 0],
            )
        finally:
            for number in (read_commands, read_lifeline, write_records, write_faults, write_status):
                os.close(number)
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = os.dup(process.stdout.fileno()), os.dup(process.stderr.fileno())
        process.stdout.close()
        process.stderr.close()
        self._outputs[out] = OutputStream("stdout", self.trace.emit)
        self._outputs[err] = OutputStream("stderr", self._stderr)
        for number, handler in (
            (records, self._read_records),
            (out, self._outputs[out].feed),
            (err, self._outputs[err].feed),
            (faults, self._read_faults),
            (status, self._read_status),
        ):
            _enlarge(number)
            self._selector.register(number, selectors.EVENT_READ, handler)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        os.set_blocking(self._commands, False)
        self._outgoing += msgspec.json.encode(job) + b"\n"
        self._write_commands()
        return process

    def wait(
        self,
        deadline: float | None = None,
        *,
        stoppable: bool = True,
        until_dump: bool = False,
        until: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Pass on its output until the worker is gone (True) or has to go (False), because `stop`
        is set or the deadline on the monotonic clock has passed; or until `until` holds (True).
        Raises KeyboardInterrupt.

        If the guardian was killed, a process that does not show that it belongs to the recording is
        not waited for.
        """
        while self._reading() and not until():
            now = time.monotonic()
            if self._unguarded is not None:
                self._kill_unguarded()
                if now >= self._unguarded + _DRAIN_SECONDS:
                    return True
            if deadline is not None and now >= deadline:
                return False
            if stoppable and not until_dump and self.stop is not None and self.stop.is_set():
                return False
            waits = [output.due(now) for output in self._outputs.values()]
            if deadline is not None:
                waits.append(deadline - now)
            if self.stop is not None:
                waits.append(0.1)
            if self._unguarded is not None:
                waits.append(_UNGUARDED_SECONDS)
            dumped = (
                until_dump and self._faults.endswith(b"\n") and b"Current thread" in self._faults
            )
            if dumped:
                waits.append(_QUIET_SECONDS)
            due = [wait for wait in waits if wait is not None]
            ready = self._selector.select(max(0.0, min(due)) if due else None)
            if dumped and not ready:
                return False
            for key, _ in ready:
                if key.fd == self._woken:
                    os.read(self._woken, 4096)
                    self._write_commands()
                elif key.fd == self._commands:
                    self._write_commands()
                else:
                    self._read(key)
            now = time.monotonic()
            for output in self._outputs.values():
                output.flush_if_due(now)
        return True

    def _reading(self) -> bool:
        """Whether a pipe of the worker is still open."""
        registered = self._selector.get_map()
        return any(fd not in (self._woken, self._commands) for fd in registered)

    def _read(self, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, _READ_BYTES)
        if data:
            key.data(data)
        else:
            self._selector.unregister(key.fd)
            os.close(key.fd)
            if key.data == self._read_status and not self._status:
                # A process of the user's may hold the other pipes open.
                self._unguarded = time.monotonic()

    def _write_commands(self) -> None:
        """Write as much as the pipe takes; the rest when it is writable again."""
        if self._commands < 0:
            return
        with self._outgoing_lock:
            try:
                while self._outgoing:
                    del self._outgoing[: os.write(self._commands, self._outgoing)]
            except BlockingIOError:
                pass
            except OSError:  # it died; its status says how
                self._outgoing.clear()
            left = bool(self._outgoing)
        registered = self._commands in self._selector.get_map()
        if left and not registered:
            self._selector.register(self._commands, selectors.EVENT_WRITE, None)
        elif registered and not left:
            self._selector.unregister(self._commands)

    def _read_records(self, data: bytes) -> None:
        for record in self._decoder.feed(data):
            if isinstance(record, End):
                self.end = record
                continue
            if isinstance(record, Start):
                self._worker = record.pid
            self._autopsy.see(record)
            self.on_record(record)

    def _stderr(self, record: Record) -> None:
        self._autopsy.see(record)
        self.trace.emit(record)

    def _read_faults(self, data: bytes) -> None:
        self._faults = (self._faults + data)[-(1 << 20) :]

    def _read_status(self, data: bytes) -> None:
        self._status += data

    def _release(self) -> None:
        """Close the lifeline, so that the guardian kills every process of the recording."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
            if self._commands in self._selector.get_map():
                self._selector.unregister(self._commands)
            os.close(self._commands)
            self._commands = -1

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
        if not self._status:
            self._kill_unguarded()

    def _kill_unguarded(self) -> None:
        """Kill what the guardian watched, after it was killed itself."""
        if self._worker:
            with contextlib.suppress(OSError):
                os.killpg(self._worker, signal.SIGKILL)
            kill_marked(self._mark)


def _fresh_caches(folder: str) -> dict[str, str]:
    """Set the variables that say where torch and Triton keep what they compile."""
    if not folder:
        return {}
    return {
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
        "TCW_CACHE_DIR": os.path.join(folder, "tcw"),
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
    }


def _enlarge(number: int) -> None:
    """Enlarge the pipe, so that the worker seldom waits for the front end."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
