"""The append-only writer: when `emit` returns, the record is in the file.

Each record is one `write` of one whole line to a descriptor opened with O_APPEND. A killed process
loses at most the line it was writing. Two processes can append to one trace: the worker, and the
front end that captures its output.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable

import msgspec

from tcw.compiler.trace.bounded import SizeBound
from tcw.compiler.trace.records import Record, Text, TextHash

Sink = Callable[[bytes], None]


def text_hash(body: str) -> TextHash:
    """The content hash that names a text in a trace: 96 bits of BLAKE2b, in hex."""
    return hashlib.blake2b(body.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def clean(body: str) -> str:
    """`body` with lone surrogates replaced: JSON in UTF-8 cannot carry them."""
    try:
        body.encode("utf-8")
    except UnicodeEncodeError:
        return body.encode("utf-8", "replace").decode("utf-8")
    return body


def write_whole(descriptor: int, line: bytes) -> None:
    """Write a whole line; raises OSError if the disk is full."""
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]


class TraceWriter:
    """Stamps, encodes and writes records; stores each text once. Thread-safe."""

    def __init__(
        self, *sinks: Sink, started: float | None = None, bound: SizeBound | None = None
    ) -> None:
        self.started = time.monotonic() if started is None else started
        self.records = 0
        self.bound = bound
        self._sinks = sinks
        self._encoder = msgspec.json.Encoder()
        self._texts: set[TextHash] = set()
        self._lock = threading.RLock()

    def now(self) -> float:
        """Seconds since the recording started."""
        return time.monotonic() - self.started

    def emit(self, record: Record, needed: bool = False) -> bool:
        """Write one record; False if the trace's bound leaves it out. Sets `at` to now unless the
        caller has set it. `needed`: see `text`."""
        if not record.at:
            msgspec.structs.force_setattr(record, "at", round(self.now(), 6))
        try:
            line = self._encoder.encode(record) + b"\n"
        except UnicodeEncodeError:
            plain = msgspec.to_builtins(record)
            line = self._encoder.encode(without_surrogates(plain)) + b"\n"
        with self._lock:
            if self.bound is not None:
                if not self.bound.takes(record, len(line), needed):
                    return False
                if (less := self.bound.step()) is not None:
                    self.emit(less)
            self.records += 1
            for sink in self._sinks:
                sink(line)
        return True

    def hold(self, seconds: float = 1.0) -> None:
        """Stop all other threads from writing: the process is about to end. Waits for a thread that
        is writing, so that its line is complete."""
        self._lock.acquire(timeout=seconds)

    def text(self, body: str, needed: bool = False) -> TextHash:
        """Store `body` unless already stored, and return its hash; "" for an empty text. A trace
        with a bound leaves texts out from some size on, those that are `needed` later."""
        if not body:
            return ""
        body = clean(body)
        key = text_hash(body)
        with self._lock:
            if key not in self._texts and self.emit(Text(hash=key, body=body), needed):
                self._texts.add(key)
        return key


def without_surrogates(value: object) -> object:
    """A value of plain types with `clean` texts."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_surrogates(item) for item in value]
    return value
