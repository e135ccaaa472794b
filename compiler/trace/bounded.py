"""A trace that stays under a size: what is written of a recording that has no end.

The first half of the size is for everything. From there on only the outline of each compile is
written (its frame, breaks, captured graph, guards, recompiles, kernels without their code). In the
last quarter, only that it happened is written. What is kept back at the end is for the end. Each
step is said in the trace when it is taken, so that a killed process's trace says it too.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

from tcw.compiler.trace import records
from tcw.compiler.trace.records import Graph, LeftOut, Record

LEAST = 1 << 20
"""Bytes of the smallest bound: below, not even one compile fits."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"\s*(\d[\d,]*(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.I)

Level = Literal["all", "outline", "headlines", "end"]
LEVELS: tuple[Level, ...] = ("all", "outline", "headlines", "end")
_FROM = {"all": 0.0, "outline": 0.5, "headlines": 0.75, "end": 0.98}
"""The part of the size at which each begins."""

_ALWAYS = (records.Start, records.Environment, records.Failure, LeftOut, records.End)
_HEADLINES = (
    *(*_ALWAYS, records.FrameStart, records.FrameEnd, records.GraphBreak, records.Recompile),
    *(records.EagerFallback, records.EagerShare, records.TorchSettings, records.Warned),
)
_OUTLINE = (
    *(*_HEADLINES, records.FrameSkipped, records.Guards, records.CacheLookup, records.Kernel),
    *(records.Collectives, records.DdpBuckets, records.EagerCollective, records.Source),
    *(records.CudagraphRecording, records.CudagraphSkip),
)
_KEPT: dict[Level, tuple[type[Record], ...]] = {
    "outline": _OUTLINE,
    "headlines": _HEADLINES,
    "end": _ALWAYS,
}


def bytes_of(text: str) -> int:
    """Bytes of `100MB`, `1.5 GB`, `4,000,000`; units are 1024. Raises ValueError with the
    reason."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size: use 100MB or 2GB")
    size = float(match[1].replace(",", "")) * _UNITS[match[2].lower()]
    return int(min(size, 1 << 62))


def trace_size(text: str) -> int:
    """`bytes_of` a trace. Raises ValueError with the reason, also if no trace is that small."""
    size = bytes_of(text)
    if size < LEAST:
        raise ValueError(f"{text} is too small for a trace: use 1MB or more")
    return size


class SizeBound:
    """Decides what is still written of a recording whose trace may have `size` bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.written = 0
        self.level: Level = "all"
        self.left_out: Counter[str] = Counter()
        """Kind of record -> how many were left out."""

    def takes(self, record: Record, length: int, needed: bool = False) -> bool:
        """Whether this record of `length` bytes is written; it is counted either way. `needed`: a
        text of the outline. A record that would not fit is left out at any level."""
        kept = _KEPT.get(self.level)
        takes = kept is None or isinstance(record, kept)
        if self.level == "outline":
            captured = isinstance(record, Graph) and record.kind == "captured"
            takes = takes or needed or captured
        room = self.size * (1.0 if isinstance(record, _ALWAYS) else _FROM["end"])
        if not takes or self.written + length > room:
            self.left_out[str(record.__struct_config__.tag)] += 1
            return False
        self.written += length
        return True

    def step(self) -> LeftOut | None:
        """The record of the next level, if it has been reached."""
        further = LEVELS[LEVELS.index(self.level) + 1 :]
        if not further or self.written < self.size * _FROM[further[0]]:
            return None
        self.level = further[0]
        return LeftOut(level=self.level, size=self.size, records=dict(self.left_out))

    def last(self) -> LeftOut | None:
        """What was left out in all; None for nothing."""
        if not self.left_out:
            return None
        return LeftOut(level=self.level, size=self.size, records=dict(self.left_out))
