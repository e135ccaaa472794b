"""What the user's program prints, as records: batched, capped, and drained beyond the cap."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable
from typing import Literal

from tcw.compiler.trace.records import Output, OutputCapped, Record

CAP_BYTES = 1_000_000
_GATHER_SECONDS = 0.05
_GATHER_BYTES = 32_768


class OutputStream:
    """stdout or stderr. Emits few records for many small writes, none beyond the cap."""

    def __init__(self, stream: Literal["stdout", "stderr"], emit: Callable[[Record], None]) -> None:
        self._stream = stream
        self._emit = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting: list[bytes] = []
        self._size = 0
        self._since = 0.0
        self._left = CAP_BYTES

    def feed(self, data: bytes) -> None:
        """Take what was read from the pipe."""
        if self._left <= 0:
            return
        if not self._waiting:
            self._since = time.monotonic()
        kept = data[: self._left]
        self._left -= len(kept)
        self._waiting.append(kept)
        self._size += len(kept)
        if self._left <= 0:
            self._flush(final=True)
            self._emit(OutputCapped(stream=self._stream, cap_bytes=CAP_BYTES))
        elif self._size >= _GATHER_BYTES:
            self._flush()

    def due(self, now: float) -> float | None:
        """Seconds until the pending text has to be emitted; None if there is none."""
        return self._since + _GATHER_SECONDS - now if self._waiting else None

    def flush_if_due(self, now: float) -> None:
        if self._waiting and now - self._since >= _GATHER_SECONDS:
            self._flush()

    def close(self) -> None:
        """The stream has ended: emit the rest."""
        if self._left > 0:
            self._flush(final=True)

    def _flush(self, final: bool = False) -> None:
        text = self._decoder.decode(b"".join(self._waiting), final)
        self._waiting.clear()
        self._size = 0
        if text:
            self._emit(Output(stream=self._stream, text=text))
