"""Where records go: the trace file, and from the worker also the front end's pipe."""

from __future__ import annotations

import os
from collections.abc import Callable

from tcw.compiler.trace.writer import write_whole


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
