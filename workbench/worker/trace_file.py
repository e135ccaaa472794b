"""The trace of a recording as the front end holds it: opened for the worker, closed with an end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from compiler.trace.records import AnyRecord, Record
from compiler.trace.writer import TraceWriter
from workbench.worker.streams import RecordStream

OnRecord = Callable[[AnyRecord], None]


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

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
