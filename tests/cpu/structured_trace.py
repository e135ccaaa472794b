"""torch's own structured trace, kept in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._logging import structured
from torch._logging._internal import TorchLogsFormatter

Event = tuple[dict[str, Any], Any]
"""Its metadata, and its payload, which may be None."""


class StructuredTrace(logging.Handler):
    """The events so far, and the call in which each of them came."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.log: list[str] = []
        """The same as the lines that TORCH_TRACE would write."""
        self.calls: list[int] = []
        self.call = 0
        """Set by who makes the calls."""
        self.setFormatter(TorchLogsFormatter(trace=True))

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if metadata:
            self.events.append((metadata, getattr(record, "payload", None)))
            self.calls.append(self.call)
            self.log.append(self.format(record) + "\n")


@contextmanager
def structured_trace() -> Iterator[StructuredTrace]:
    """What torch writes inside the block."""
    handler = StructuredTrace()
    log = torch._logging._internal.trace_log
    level, propagate = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    interned = dict(structured.INTERN_TABLE)
    structured.INTERN_TABLE.clear()  # or the names that earlier runs told would be missing
    try:
        yield handler
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagate
        structured.INTERN_TABLE.update(interned)
