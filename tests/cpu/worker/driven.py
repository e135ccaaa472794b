"""A person at a driven recording, in a program: what comes is waited for, commands are sent."""

from __future__ import annotations

import os
import queue
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tcw.compiler.protocol.commands import AnyCommand, Breakpoint, Go, Mode
from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import (
    AnyRecord,
    End,
    Failure,
    Kernel,
    Record,
    Settings,
    Waiting,
    Wrapper,
)
from tcw.viewers.recording import Recording
from tcw.workbench.worker.client import Driver
from tests.cpu.worker.recorded import MARK, left_behind
from tests.decided import pairs_in

R = TypeVar("R", bound=Record)
SECONDS = 240.0

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)
        self.register_buffer("calls", torch.zeros(()))

    def act(self, x):
        y = torch.relu(x)
        return torch.softmax(y, -1)

    def forward(self, x):
        self.calls += 1
        h = self.norm(x) * self.calls
        h = self.act(h)
        return h.sum(-1) * 2 + h.amax(-1)

torch.manual_seed(0)
model = Net()
example_inputs = (torch.randn(8, 16),)
"""
"""It counts its own calls and keeps statistics: a run that starts from another's state differs."""


class Person:
    """Sends commands, and knows all records so far."""

    def __init__(
        self, settings: Settings, trace: Path | None, breakpoints: Sequence[Breakpoint] = ()
    ) -> None:
        self.settings = settings
        self.trace = trace
        self.records: list[AnyRecord] = []
        self._came: queue.SimpleQueue[AnyRecord] = queue.SimpleQueue()
        self.driver = Driver(settings, trace, self._take, breakpoints)

    def _take(self, record: AnyRecord) -> None:
        self.records.append(record)
        self._came.put(record)

    def send(self, command: AnyCommand) -> None:
        self.driver.send(command)

    def next(self, kind: type[R], such: Callable[[R], bool] = lambda _: True) -> R:
        """The next record of this kind, of those that were not waited for yet."""
        deadline = time.monotonic() + SECONDS
        while True:
            record = self._came.get(timeout=max(0.0, deadline - time.monotonic()))
            if isinstance(record, kind) and such(record):
                return record
            assert not isinstance(record, End), record

    def waits(self) -> Waiting:
        return self.next(Waiting)

    def goes(self, mode: Mode = "continue", **more: Any) -> Waiting:
        """Go on; the next place where it waits."""
        self.send(Go(mode=mode, **more))
        return self.waits()

    def until_end(self, mode: Mode = "continue") -> list[Waiting]:
        """Go on in this mode, again and again, to the end of the run; all the places."""
        found: list[Waiting] = []
        while not found or found[-1].kind != "end":
            found.append(self.goes(mode))
        return found

    def all(self, kind: type[R]) -> list[R]:
        return [record for record in self.records if isinstance(record, kind)]

    def leaves(self) -> End:
        """Stop, and see that nothing is left behind."""
        self.driver.stop()
        assert self.driver.join(SECONDS)
        assert self.driver.error is None
        assert self.driver.end is not None
        return self.driver.end


@contextmanager
def person(
    settings: Settings, trace: Path | None = None, breakpoints: Sequence[Breakpoint] = ()
) -> Iterator[Person]:
    """At a recording that waits before its first step; nothing is left of it at the end."""
    mark = os.environ[MARK] = uuid.uuid4().hex
    try:
        one = Person(settings, trace, breakpoints)
        try:
            assert one.waits().kind == "start"
            yield one
        finally:
            one.leaves()
    finally:
        del os.environ[MARK]
    assert left_behind(mark) == []
    assert all(failure.culprit != "tcw" for failure in one.all(Failure))
    if trace is not None:
        read = read_trace(trace)
        assert read.losses.total == 0
        assert not read.losses.partial
        assert isinstance(read.records[-1], End)
        assert len(read.records) == len(one.records)


def vetoed(one: Person) -> str:
    """A fusion that its engine chose by itself."""
    return next(pair.id for pair in pairs_in(one) if pair.fused and pair.phase == "commit")


def runs(one: Person) -> dict[int, Recording]:
    return Recording(one.records).runs


def written(recording: Recording) -> dict[str, str]:
    """All generated code of a recording: kernels by id and name, and what calls them."""
    found = {
        f"{kernel.graph} {kernel.id} {kernel.name}": recording.text(kernel.text)
        for kernel in recording.all(Kernel)
    }
    for wrapper in recording.all(Wrapper):
        found[f"wrapper {wrapper.graph}"] = recording.text(wrapper.text)
    return found
