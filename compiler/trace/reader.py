"""The tolerant reader: damaged and unknown lines are skipped and counted, the rest is read.

It also follows a trace that is still being written: feed it bytes as they come.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from compiler.trace.records import SCHEMA_VERSION, AnyRecord, End, Start

CHUNK = 4 << 20
"""Bytes that are read at once: a trace is never in memory a second time, as bytes."""


class TraceError(Exception):
    """The file is no trace, or of a schema that this version cannot read."""


@dataclass
class Losses:
    """What a reader had to leave out."""

    damaged: int = 0
    """Lines that are no JSON object or do not fit their record."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Tags that this version does not know, with their counts: a newer tool wrote them."""
    partial: bool = False
    """The last line has no end: the writer was cut off, or is still writing it."""

    @property
    def total(self) -> int:
        return self.damaged + sum(self.unknown.values())


class _Tag(msgspec.Struct):
    record: str = ""


_KNOWN = frozenset(str(kind.__struct_config__.tag) for kind in AnyRecord.__args__)


class TraceDecoder:
    """Turns bytes into records, however the bytes are cut."""

    def __init__(self) -> None:
        self.losses = Losses()
        self.ended = False
        self.start: Start | None = None
        self._rest = b""
        self._decode = msgspec.json.Decoder(AnyRecord).decode
        self._tag = msgspec.json.Decoder(_Tag).decode

    def feed(self, data: bytes) -> list[AnyRecord]:
        """The records of all lines that `data` completes, in order."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        self.losses.partial = bool(self._rest)
        decode = self._decode
        records: list[AnyRecord] = []
        for line in lines:
            if not line.strip():
                continue
            try:
                record = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._lose(line)
                continue
            if isinstance(record, Start):
                if record.schema_version > SCHEMA_VERSION:
                    raise TraceError(
                        f"this trace has schema {record.schema_version} (tcw "
                        f"{record.tool_version} wrote it); this tcw reads up to {SCHEMA_VERSION}: "
                        "install a newer tcw"
                    )
                self.start = self.start or record
            elif isinstance(record, End):
                self.ended = True
            records.append(record)
        return records

    def _lose(self, line: bytes) -> None:
        try:
            tag = self._tag(line).record
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            tag = ""
        if tag and tag not in _KNOWN:
            self.losses.unknown[tag] = self.losses.unknown.get(tag, 0) + 1
        else:
            self.losses.damaged += 1


class FileFollower:
    """Reads on in a trace file that may still grow."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes at most; all that there are for -1."""
        return self._file.read(size)

    def close(self) -> None:
        self._file.close()


@dataclass
class Trace:
    """All that could be read of one trace."""

    records: list[AnyRecord]
    losses: Losses
    path: Path | None = None

    @property
    def complete(self) -> bool:
        """Whether the recording was ended by its writer."""
        return any(isinstance(record, End) for record in reversed(self.records))


def read_trace(path: Path) -> Trace:
    """Read a trace file.

    Raises `TraceError` where the file holds no start record of a trace at all, and `OSError`
    where it cannot be read.
    """
    decoder = TraceDecoder()
    records: list[AnyRecord] = []
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            records.extend(decoder.feed(data))
    if decoder.start is None and not records:
        name = os.fspath(path)
        raise TraceError(f"{name} is not a tcw trace: no line of it is a record")
    return Trace(records, decoder.losses, path)
