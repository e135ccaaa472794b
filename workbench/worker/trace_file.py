"""The trace of a recording as the front end holds it: opened for the worker, closed with an end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from tcw.compiler.trace.output_file import SAFELY, TRACE, OutputRefused, check, check_open, words
from tcw.compiler.trace.records import AnyRecord, Record
from tcw.compiler.trace.writer import TraceWriter, write_whole


class RecordStream:
    """Writes each line to the trace file, then to the pipe. Never raises.

    The user's program runs in this process, so a full disk or a closed descriptor must not become
    an exception in the middle of a compile. The first such error is kept in `lost`, and the trace
    ends there. Forked children of the user's program inherit the stream and write nothing.
    """

    def __init__(self, trace: int, pipe: int) -> None:
        self.lost = ""
        """Why records did not reach the trace file; "" if all did."""
        self.on_lost: Callable[[str], object] = lambda words: None
        """Called with it at once."""
        self.pipe_lost = False
        """Whether the front end gets nothing from here on."""
        self._trace = trace
        self._pipe = pipe
        self._process = os.getpid()

    def __call__(self, line: bytes) -> None:
        if os.getpid() != self._process:
            return
        if self._trace >= 0:
            try:
                write_whole(self._trace, line)
            except OSError as error:
                self.lost = f"the trace could not be written: {error.strerror}"
                self._trace = -1
                self.on_lost(self.lost)
        self.stream(line)

    def stream(self, line: bytes) -> None:
        """Write to the pipe only."""
        if self._pipe >= 0 and os.getpid() == self._process:
            try:
                write_whole(self._pipe, line)
            except OSError:
                # The front end is gone, and the guardian is about to end this process; or the
                # user's program has closed what it did not open.
                self._pipe = -1
                self.pipe_lost = True


OnRecord = Callable[[AnyRecord], None]
_READ_BYTES = 1 << 20


class TraceFile:
    """Where the front end's own records go; workers append to the same descriptor."""

    def __init__(self, path: Path | None, on_record: OnRecord) -> None:
        """`path` is overwritten; None writes nothing to disk. Raises `OutputRefused` if it is not a
        trace, or another recording is writing to it."""
        self.started = time.monotonic()
        self.on_record = on_record
        self.descriptor = -1 if path is None else _opened(path)
        self.file = RecordStream(self.descriptor, -1)
        self.writer = TraceWriter(self.file, started=self.started)

    def emit(self, made: Record) -> None:
        """Add a record of the front end."""
        self.writer.emit(made)
        self.on_record(made)

    def close_partial_line(self) -> None:
        """End the line that a worker left open when it was killed while writing."""
        if self.descriptor >= 0:
            size = os.fstat(self.descriptor).st_size
            if size and os.pread(self.descriptor, 1, size - 1) != b"\n":
                self.file(b"\n")

    def lines(self) -> int:
        """How many lines are in the file, whoever wrote them; 0 if it cannot be read."""
        found = place = 0
        with contextlib.suppress(OSError):
            while self.descriptor >= 0 and (data := os.pread(self.descriptor, _READ_BYTES, place)):
                found += data.count(b"\n")
                place += len(data)
        return found

    def close(self) -> None:
        if self.descriptor >= 0:
            with contextlib.suppress(OSError):
                # Closing is not enough: a process of the user's may have inherited the descriptor.
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            os.close(self.descriptor)
            self.descriptor = -1


def _opened(path: Path) -> int:
    """A descriptor of a new trace, or of an existing one, locked and emptied."""
    check(path, TRACE)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | SAFELY, 0o644)
    except OSError as error:
        raise OutputRefused(words(error)) from error
    try:
        _lock(descriptor)
        check_open(descriptor, TRACE)
        os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int) -> None:
    """Keep other recordings out until the trace is closed and all its workers are gone: they
    inherit the lock with the descriptor."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = _owner(descriptor)
        by = f" (process {owner})" if owner else ""
        raise OutputRefused(f"another recording is writing to it{by}") from error
    except OSError:
        pass  # a file system without locks


def _owner(descriptor: int) -> int:
    """The process that took the lock; 0 if the kernel does not say."""
    inode = os.fstat(descriptor).st_ino
    with contextlib.suppress(OSError), open("/proc/locks", encoding="ascii") as stream:
        for line in stream:
            match = re.search(r"FLOCK +\S+ +WRITE +(\d+) +\w+:\w+:(\d+) ", line)
            if match and int(match[2]) == inode:
                return int(match[1])
    return 0
