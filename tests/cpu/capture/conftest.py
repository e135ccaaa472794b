"""A recording of a few calls with the capture hooks, for tests of single records."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tcw.compiler.capture import HOOKS
from tests.cpu.recorded import Recorded, record


class Capture:
    """Every capture hook is installed; provides the records written so far."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorder = recorded.recorder
        self.all = recorded.all

    def call(self, action: Callable[[], object]) -> object:
        """Make the next numbered call."""
        self.recorder.call += 1
        self.recorder.compiled_in_call.clear()
        return action()


@pytest.fixture
def capture() -> Iterator[Capture]:
    with record(HOOKS, file="") as recorded:
        yield Capture(recorded)
