"""The trace of a recording as the front end holds it: opened for the worker, closed with an end."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from compiler.trace.records import AnyRecord, Record
from compiler.trace.writer import TraceWriter
from workbench.worker.streams import RecordStream

OnRecord = Callable[[AnyRecord], None]
_READ_BYTES = 1 << 20


class TraceFile:
    """Where the front end's own records go; workers append to the same descriptor."""

    def __init__(self, path: Path | None, on_record: OnRecord) -> None:
        """`path` is written anew; None writes nothing to disk. Raises OSError."""
        self.started = time.monotonic()
        self.on_record = on_record
        self.descriptor = -1
        if path is not None:
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
            self.descriptor = os.open(path, flags, 0o644)
        self.file = RecordStream(self.descriptor, -1)
        self.writer = TraceWriter(self.file, started=self.started)

    def emit(self, made: Record) -> None:
        """Add a record of the front end's own."""
        self.writer.emit(made)
        self.on_record(made)  # type: ignore[arg-type]

    def close_partial_line(self) -> None:
        """A worker that was killed while it wrote has left a line without an end."""
        if self.descriptor >= 0:
            size = os.fstat(self.descriptor).st_size
            if size and os.pread(self.descriptor, 1, size - 1) != b"\n":
                self.file(b"\n")

    def lines(self) -> int:
        """How many lines are in the file, whoever wrote them; 0 where none can be read back."""
        found = place = 0
        with contextlib.suppress(OSError):
            while self.descriptor >= 0 and (data := os.pread(self.descriptor, _READ_BYTES, place)):
                found += data.count(b"\n")
                place += len(data)
        return found

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
