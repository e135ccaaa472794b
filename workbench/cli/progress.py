"""What a recording is doing, on stderr: a line that changes on a terminal, else a rare line."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from typing import TextIO

from tcw.compiler.trace.records import AnyRecord, Progress, StageStart
from tcw.viewers.kit.cells import cut
from tcw.viewers.plain import fit_encoding, plain

PATIENCE = 10.0
"""Seconds between lines if stderr is not a terminal; a shorter recording prints none."""
TICK = 0.2


class ProgressLine:
    """A context in which records are fed to `see`."""

    def __init__(self, stream: TextIO, quiet: bool) -> None:
        self._stream = stream
        self._live = stream.isatty() and not quiet
        self._quiet = quiet
        self._what = "starting"
        self._began = time.monotonic()
        self._said = self._began
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> ProgressLine:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if not self._quiet:
            self._thread.join()
        if self._live:
            self._write("\r\x1b[K")

    def see(self, record: AnyRecord) -> None:
        """Note what is being done: `build 0/0/forward`."""
        if isinstance(record, Progress):
            self._what = f"{record.stage}  {record.activity}"
        elif isinstance(record, StageStart):
            self._what = f"{record.stage}  {record.graph or record.compile_id}".strip()

    def _tick(self) -> None:
        while not self._done.wait(TICK):
            now = time.monotonic()
            if self._live:
                self._write("\r\x1b[K" + self._text(now))
            elif now - self._said >= PATIENCE:
                self._said = now
                self._write(self._text(now) + "\n")

    def _text(self, now: float) -> str:
        columns = max(20, shutil.get_terminal_size().columns - 1)
        text = cut(plain(f"{now - self._began:4.0f} s  {self._what}"), columns)
        return fit_encoding(text, self._stream.encoding or "ascii")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
