"""The traces that benchmarks of the front end are run on can be written and read."""

from __future__ import annotations

from pathlib import Path

from benchmarks.traces import large_trace
from tcw.viewers.recording import Recording


def test_a_large_trace_is_one(tmp_path: Path) -> None:
    file = tmp_path / "large.tcw"
    count = large_trace(file, 2.0, nodes=100)
    recording = Recording.open(file)
    assert len(recording.records) == count
    assert recording.end is not None
    assert not recording.losses
