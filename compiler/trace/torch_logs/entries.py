"""The entries of a log: a line with a prefix and JSON, then payload lines that begin with a tab.

The log may be cut off, damaged, or mixed with what other programs wrote: what cannot be read is
counted with its lines, and the rest is read. A log may come from anyone, so nothing here costs more
than its size: an entry of more than `LONGEST` bytes is dropped while it streams by.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from tcw.compiler.trace.losses import Losses

LONGEST = 64 << 20
"""Bytes of the largest entry that is read."""

HEADER = re.compile(
    rb"(?:\[rank\d{1,6}\]:)?[VIWEC](?P<month>\d\d)(?P<day>\d\d) "
    rb"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)\.(?P<micro>\d{6}) "
    rb"(?P<pid>\d{1,10}) [^\n\]]{0,4096}\] (?=\{)"
)
"""torch's prefix of an entry (`TorchLogsFormatter` in torch/_logging/_internal.py)."""
_CONTEXT = frozenset(
    (
        *("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt"),
        *("has_payload", "stack", "subgraph_name"),
    )
)
"""Keys of the metadata that say where an entry belongs; the other one says what it is."""
_DAY = 86400.0


@dataclass(slots=True)
class LogEntry:
    """One entry of the log."""

    line: int
    """Its first line in the log, from 1."""
    seconds: float
    """Its time of day: seconds since midnight."""
    pid: int
    kind: str
    """`dynamo_output_graph`; for an artifact its name."""
    data: Any
    """What the metadata has under that kind."""
    metadata: dict[str, Any]
    raw: bytes
    """The payload lines as they are in the log."""
    compile_id: str = ""
    """The name of the compile it belongs to, which the decoder gives it; "" outside a compile."""

    @property
    def torchs_id(self) -> str:
        """torch's `frame/compile`, `!1/0/0` in compiled autograd; "" outside a compile. It may be
        that of several compiles (`tcw.compiler.trace.compile_names`)."""
        frame, compile = self.metadata.get("frame_id"), self.metadata.get("frame_compile_id")
        outer = self.metadata.get("compiled_autograd_id")
        if not _small(frame) or not _small(compile):
            return f"!{outer}" if _small(outer) else ""
        return f"!{outer}/{frame}/{compile}" if _small(outer) else f"{frame}/{compile}"

    @property
    def attempt(self) -> int:
        found = self.metadata.get("attempt")
        return found if isinstance(found, int) and 0 <= found <= 10_000_000 else 0

    @property
    def payload(self) -> bytes:
        """The payload without the tabs."""
        return self.raw[1:].replace(b"\n\t", b"\n") if self.raw.startswith(b"\t") else self.raw

    @property
    def text(self) -> str:
        return self.payload.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The payload as JSON; None if it is not JSON."""
        try:
            return msgspec.json.decode(self.payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    @property
    def whole(self) -> bool:
        """Whether the payload is what torch wrote, by its checksum."""
        told = self.metadata.get("has_payload")
        if not isinstance(told, str):
            return not self.raw
        return hashlib.md5(self.payload, usedforsecurity=False).hexdigest() == told


def _small(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**31


class EntryReader:
    """Splits a log into entries, for any split of its bytes."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self._held = bytearray()
        self._line = 1
        """The line at which the held bytes begin."""
        self._looked = 0
        """Bytes of them that hold no further beginning of an entry."""
        self._decode = msgspec.json.Decoder().decode

    def feed(self, data: bytes) -> Iterator[LogEntry]:
        """The entries that these bytes complete, in order."""
        held = self._held
        held += data
        start = 0
        while (end := _next_start(held, max(start, self._looked) + 1)) >= 0:
            yield from self._block(bytes(held[start:end]))
            start = self._looked = end
        del held[:start]
        self._looked = max(0, len(held) - _PREFIX)
        if len(held) > LONGEST:
            self._drop()

    def finish(self) -> Iterator[LogEntry]:
        """The last entry, which nothing follows."""
        block = bytes(self._held)
        self._held.clear()
        if block:
            yield from self._block(block)

    def _drop(self) -> None:
        """Forget the lines of an entry that has become too long, but for the last one."""
        last = self._held.rfind(b"\n") + 1 or len(self._held)
        self._lose(self._line, bytes(self._held[:last]))
        self._line += self._held.count(b"\n", 0, last)
        del self._held[:last]
        self._looked = 0

    def _block(self, block: bytes) -> Iterator[LogEntry]:
        """The entry at the start of a block of lines; other lines in it are losses."""
        line = self._line
        self._line += block.count(b"\n")
        match = HEADER.match(block)
        if match is None:
            self._lose(line, block)
            return
        at = block.find(b"\n")
        head, raw = (block, b"") if at < 0 else (block[:at], block[at + 1 :])
        if raw.endswith(b"\n"):
            raw = raw[:-1]
        if raw and (not raw.startswith(b"\t") or raw.count(b"\n") != raw.count(b"\n\t")):
            raw = self._payload_of(raw, line + 1)
        try:
            metadata = self._decode(head[match.end() :])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            metadata = None
        entry = self._entry(line, match, metadata, raw)
        if entry is None:
            self._lose(line, block)
        else:
            yield entry

    def _payload_of(self, raw: bytes, line: int) -> bytes:
        """The lines that begin with a tab; the others are losses."""
        kept = []
        for number, part in enumerate(raw.split(b"\n"), line):
            if part.startswith(b"\t"):
                kept.append(part)
            elif part:
                self._lose(number, part)
        return b"\n".join(kept)

    def _lose(self, line: int, block: bytes) -> None:
        lines = sum(1 for part in block.split(b"\n") if part.strip())
        if lines:
            self.losses.damage(line, lines)
            self.losses.bytes += len(block)

    def _entry(
        self, line: int, match: re.Match[bytes], metadata: object, raw: bytes
    ) -> LogEntry | None:
        if not isinstance(metadata, dict):
            return None
        kind = next((key for key in metadata if key not in _CONTEXT), "")
        data = metadata.get(kind)
        if kind == "artifact" and isinstance(data, dict):
            kind = str(data.get("name", ""))
        hour, minute, second, micro = (
            int(match[name]) for name in ("hour", "minute", "second", "micro")
        )
        seconds = hour * 3600 + minute * 60 + second + micro / 1e6
        return LogEntry(
            line, min(seconds, _DAY), min(int(match["pid"]), 2**31 - 1), kind, data, metadata, raw
        )


def _next_start(data: bytearray, after: int) -> int:
    """Where the next entry begins, from `after` on; -1 if none does."""
    at = after - 1
    while (match := _NEXT(data, at)) is not None:
        at = match.start() + 1
        if HEADER.match(data, at):
            return at
    return -1


_NEXT = re.compile(rb"\n(?=[\[VIWEC])").search
_PREFIX = 8192
"""No prefix is longer."""
