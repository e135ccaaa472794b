"""The tolerant reader: damaged and unknown lines are skipped and counted, the rest is read.

It also follows a trace that is still being written: feed it bytes as they arrive. A trace may come
from anyone, so nothing here costs more than the file's size. Only regular files are opened, and a
line longer than `LONGEST` is skipped while it streams by. Numbers have the bounds of their records,
and duplicates are read once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from tcw.compiler.trace.losses import Losses
from tcw.compiler.trace.plain_file import NotPlain
from tcw.compiler.trace.records import (
    KINDS,
    SCHEMA_VERSION,
    AnyRecord,
    CompiledStep,
    EagerOperation,
    End,
    EnginePart,
    Kernel,
    Note,
    Output,
    OutputCapped,
    Region,
    Run,
    Start,
    Waiting,
)
from tcw.compiler.trace.torch_logs.decoder import LogDecoder, is_log
from tcw.compiler.trace.torch_logs.log_files import open_log, process_of
from tcw.compiler.trace.unpacked import UnknownCompression, ends_early

HEAD = 1 << 16
"""Bytes from which a file is known as a trace or a log."""
CHUNK = 4 << 20
"""Bytes read at once, so that a trace is not also in memory as bytes."""
LONGEST = 64 << 20
"""Bytes of the longest line that is read; longer ones count as damaged."""


class TraceError(Exception):
    """The file is not a trace, or its schema is newer than this version reads."""


class _Tag(msgspec.Struct):
    record: str = ""


_KNOWN = frozenset(str(kind.__struct_config__.tag) for kind in KINDS)
_NAMED = (Kernel, EagerOperation, CompiledStep, Region)
"""Their `id` is unique in each part of a trace, and viewers add up their figures."""
_LOOKED_INTO = frozenset((Start, Run, EnginePart, End, *_NAMED))
_BETWEEN = (Note, Output, OutputCapped, Waiting)
"""What the front end may write between a `Run` and the `Start` of the worker that runs it."""
_SAME_RECORDING = 1.0
"""Seconds by which the start times of two workers of one recording may differ: the machine's clock
may have been set in between."""


class TraceDecoder:
    """Decodes bytes into records, for any split of the bytes."""

    def __init__(self) -> None:
        self.losses = Losses()
        self.ended = False
        self.start: Start | None = None
        self._pieces: list[bytes] = []
        """Pieces of an incomplete line."""
        self._size = 0
        """Bytes of that line so far; its pieces are dropped once it is too long."""
        self._lines = 0
        self._seen: set[int] = set()
        """Hashes of the lines so far, and of the names in them."""
        self._part: tuple[int, str] = (0, "")
        """Run and engine of the current records."""
        self._begins = False
        """A `Run` was read, and nothing of its worker since."""
        self._foreign = False
        """Whether another recording has begun in this file."""
        self._wary = False
        """Whether every record has to be checked, whatever its kind."""
        self._decode = msgspec.json.Decoder(AnyRecord).decode
        self._tag = msgspec.json.Decoder(_Tag).decode

    def feed(self, data: bytes) -> list[AnyRecord]:
        """The records of all lines that `data` completes, in order."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._size:
            self._hold(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
        if rest:
            self._hold(rest)
        self.losses.partial = bool(self._size)
        records: list[AnyRecord] = []
        decode, seen = self._decode, self._seen
        for line in lines:
            if len(line) > LONGEST:
                self._lines += 1
                self.losses.damage(self._lines)
                continue
            try:
                record = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                if line and not line.isspace():
                    self._lines += 1
                    self._lose(line)
                continue
            self._lines += 1
            known = len(seen)
            seen.add(hash(line))
            if len(seen) == known and record.at and type(record) is not Note:
                self.losses.doubled += 1
            elif (type(record) not in _LOOKED_INTO and not self._wary) or self._belongs(record):
                records.append(record)
        return records

    def finish(self) -> list[AnyRecord]:
        """The records that are known only at the end of the file: none, for a trace."""
        return []

    def _hold(self, piece: bytes) -> None:
        """Keep a piece of a line, or count the line as damaged once it is too long."""
        before = self._size
        self._size += len(piece)
        if self._size <= LONGEST:
            self._pieces.append(piece)
        elif before <= LONGEST:
            self._pieces.clear()
            self._lines += 1
            self.losses.damage(self._lines)

    def _belongs(self, record: AnyRecord) -> bool:
        """Whether a record belongs to this recording and was not read before under its name."""
        if isinstance(record, Start):
            self._begin(record)
        if self._foreign or (self.ended and not isinstance(record, Note)):
            self.losses.foreign += 1
            return False
        if isinstance(record, _NAMED):
            known = len(self._seen)
            self._seen.add(hash((type(record), self._part, record.id)))
            if len(self._seen) == known:
                self.losses.doubled += 1
                return False
        elif isinstance(record, Run):
            self._part = (record.number, "")
        elif isinstance(record, EnginePart):
            self._part = (self._part[0], record.engine)
        elif isinstance(record, End):
            self._end(record)
        if not isinstance(record, _BETWEEN):
            self._begins = isinstance(record, Run)
        self._wary = self.ended or self._foreign or self._begins
        return True

    def _begin(self, start: Start) -> None:
        if start.schema_version > SCHEMA_VERSION:
            raise TraceError(
                f"this trace has schema {start.schema_version} (tcw {start.tool_version} wrote "
                f"it); this tcw reads up to {SCHEMA_VERSION}: install a newer tcw"
            )
        if self.start is None:
            self.start = start
        elif not self._begins and abs(start.time - self.start.time) > _SAME_RECORDING:
            self._foreign = self._wary = True

    def _end(self, end: End) -> None:
        self.ended = True
        if end.lines:
            found = self._lines - 1 - self.losses.doubled
            self.losses.written = end.lines
            self.losses.missing = max(0, end.lines - found)
            readable = found - self.losses.damaged - sum(self.losses.unknown.values())
            self.losses.added = max(0, readable - end.lines)

    def _lose(self, line: bytes) -> None:
        try:
            tag = self._tag(line).record
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            tag = ""
        if tag and tag not in _KNOWN:
            self.losses.unknown[tag] = self.losses.unknown.get(tag, 0) + 1
        else:
            self.losses.damage(self._lines)


class Decoder(Protocol):
    """What turns the bytes of a trace or log into records."""

    losses: Losses
    ended: bool
    """Whether nothing more belongs to this recording."""
    start: Start | None

    def feed(self, data: bytes) -> list[AnyRecord]:
        """The records that these bytes complete, in order."""

    def finish(self) -> list[AnyRecord]:
        """The last records, at the end of a file that does not grow."""


def decoder_for(head: bytes, path: Path) -> Decoder:
    """What decodes a file that begins like this: a trace, or a log of torch."""
    if is_log(head[:HEAD]) and not head.startswith(b'{"record"'):
        file, process = process_of(path)
        return LogDecoder(file.name, process)
    return TraceDecoder()


def open_trace(path: Path) -> BinaryIO:
    """Open a file that may be a trace or a log, for reading; a compressed one is unpacked, and the
    parts of a rotated log are joined.

    Raises `OSError` if it cannot be read. Raises `TraceError` if its compression cannot be read
    here, or if it is not a regular file: a FIFO or a device may block forever and has no end.
    """
    try:
        return open_log(path)
    except NotPlain as error:
        raise TraceError(str(error)) from error
    except UnknownCompression as error:
        raise TraceError(f"{path}: {error}") from error


class FileFollower:
    """Reads a trace file that may still grow. Raises what `open_trace` raises."""

    def __init__(self, path: Path) -> None:
        self._file = open_trace(path)

    def read(self, size: int = -1) -> bytes:
        """At most the next `size` bytes; all that there are for -1."""
        return self._file.read(size) or b""

    @property
    def ends_early(self) -> bool:
        """Whether the rest of a compressed file cannot be unpacked."""
        return ends_early(self._file)

    def close(self) -> None:
        self._file.close()


@dataclass
class Trace:
    """Everything that could be read of one trace."""

    records: list[AnyRecord]
    losses: Losses
    path: Path | None = None

    @property
    def complete(self) -> bool:
        """Whether the writer completed the recording."""
        return any(isinstance(record, End) for record in reversed(self.records))


def read_trace(path: Path) -> Trace:
    """Read a trace file.

    Raises `TraceError` if the file has no start record of a trace, and `OSError` if it cannot be
    read.
    """
    records: list[AnyRecord] = []
    with open_trace(path) as file:
        data = file.read(CHUNK)
        decoder = decoder_for(data, path)
        while data:
            records.extend(decoder.feed(data))
            data = file.read(CHUNK)
        decoder.losses.archive = ends_early(file)
    records.extend(decoder.finish())
    if decoder.start is None and not records:
        name = os.fspath(path)
        raise TraceError(f"{name} is not a tcw trace, nor a log of torch's: no line is a record")
    return Trace(records, decoder.losses, path)
