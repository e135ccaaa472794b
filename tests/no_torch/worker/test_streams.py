"""Where records go, where one of the two cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

from tcw.workbench.worker.trace_file import RecordStream


def test_a_trace_that_cannot_be_written_is_told_once_and_the_pipe_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "run.tcw"
    file.touch()
    trace = os.open(file, os.O_RDONLY)
    read, write = os.pipe()
    told: list[str] = []
    try:
        stream = RecordStream(trace, write)
        stream.on_lost = told.append
        stream(b"one\n")
        stream(b"two\n")
        assert os.read(read, 100) == b"one\ntwo\n"
    finally:
        for number in (trace, read, write):
            os.close(number)
    assert told == [stream.lost]
    assert stream.lost == "the trace could not be written: Bad file descriptor"
