"""A recording of a few calls with the capture hooks, for tests of single records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec
import pytest
import torch

from compiler.capture import HOOKS
from compiler.control.hooks import install_all
from compiler.control.recorder import Recorder
from compiler.trace.records import AnyRecord, Record, Settings
from compiler.trace.writer import TraceWriter

R = TypeVar("R", bound=Record)


class Capture:
    """Every capture hook is installed; provides the records written so far."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.recorder = Recorder(TraceWriter(self.lines.append), Settings(file=""))
        self.statuses, self.uninstall = install_all(HOOKS, self.recorder)
        self._decode = msgspec.json.Decoder(AnyRecord).decode

    def call(self, action: Callable[[], object]) -> object:
        """Make the next numbered call."""
        self.recorder.call += 1
        self.recorder.compiled_in_call.clear()
        return action()

    def all(self, kind: type[R]) -> list[R]:
        records = [self._decode(line) for line in self.lines]
        return [record for record in records if isinstance(record, kind)]


@pytest.fixture
def capture() -> Iterator[Capture]:
    torch._dynamo.reset()
    recording = Capture()
    try:
        yield recording
    finally:
        recording.uninstall()
        torch._dynamo.reset()
