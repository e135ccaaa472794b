"""Errors of ours while recording: said once, never raised."""

from __future__ import annotations

import pytest

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.trace.reader import TraceDecoder
from tcw.compiler.trace.records import Settings, Warned
from tcw.compiler.trace.writer import TraceWriter


class Said:
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.recorder = Recorder(TraceWriter(self.lines.append), Settings(file=""))

    @property
    def messages(self) -> list[str]:
        records = TraceDecoder().feed(b"".join(self.lines))
        return [record.message for record in records if isinstance(record, Warned)]


@pytest.fixture
def said() -> Said:
    return Said()


def fails(text: str) -> int:
    raise ValueError(text)


def line_of(function) -> int:
    return function.__code__.co_firstlineno + 1


def test_a_block_that_raises_is_said_with_its_place(said: Said) -> None:
    with Safely(said.recorder, "a graph break"):
        fails("gone")
    assert said.messages == [
        f"lost a record of a graph break: ValueError at test_safely.py:{line_of(fails)}: gone"
    ]


def test_both_forms_say_a_kind_once(said: Said) -> None:
    safely = Safely(said.recorder, "passes")
    for text in ("one", "two"):
        assert safely(fails, text) is None
        with Safely(said.recorder, "passes"):
            fails(text)
    assert len(said.messages) == 1
    with safely:
        raise ValueError("at another line")
    with Safely(said.recorder, "lowering"):
        fails("one")
    assert len(said.messages) == 3


def test_what_goes_well_is_passed_on(said: Said) -> None:
    safely = Safely(said.recorder, "fusion")
    assert safely(divmod, 7, 2) == (3, 1)
    said.recorder.quiet = True
    assert safely(divmod, 7, 2) is None
    assert said.messages == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_not_ours_goes_through(said: Said, error: type[BaseException]) -> None:
    with pytest.raises(error), Safely(said.recorder, "a frame"):
        raise error
    assert said.messages == []


def test_a_trace_that_cannot_be_written_is_no_error() -> None:
    def full(line: bytes) -> None:
        raise OSError("no space left")

    recorder = Recorder(TraceWriter(full), Settings(file=""))
    with Safely(recorder, "a frame"):
        fails("gone")
