"""`tcw.record`: what a block of a program compiles, with a trace of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import tcw
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x + 1, -1) * 2


def test_a_block_and_its_trace(tmp_path: Path) -> None:
    trace = tmp_path / "a.tcw"
    with tcw.record(trace) as recording:
        compiled = torch.compile(doubled, backend="tcw")
        compiled(torch.randn(4, 8))
        assert (recording.graphs, len(recording.recompiles)) == (1, 0)
        compiled(torch.randn(5, 8))
    assert len(recording.recompiles) == 1
    assert recording.recompiles[0].change.text == "x.size(0) 4 → 5"
    assert recording.fused("softmax", "add")
    line = doubled.__code__.co_firstlineno + 1
    assert recording.fused(f"test_library.py:{line}")
    assert not recording.fused("softmax", "sin")
    assert recording.number("kernels") == len(recording.kernels) == 2
    assert "x.size(0) 4 → 5" in repr(recording)

    read = Recording.open(trace)
    assert read.end is not None
    assert read.end.status == "ok"
    assert summarise(read).findings == recording.findings
    assert summarise(read).kernels == recording.summary.kernels


def test_what_the_block_raises_comes_out(tmp_path: Path) -> None:
    trace = tmp_path / "a.tcw"
    with pytest.raises(ZeroDivisionError), tcw.record(trace):
        raise ZeroDivisionError
    end = Recording.open(trace).end
    assert end is not None
    assert end.status == "failed"
    with tcw.record() as recording:
        pass
    assert recording.graphs == 0


def test_no_recording_inside_another() -> None:
    with tcw.record(), pytest.raises(RuntimeError, match="inside another"), tcw.record():
        pass


def test_a_file_of_someone_else_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(OSError, match="not a trace"), tcw.record(file):
        pass
    assert file.read_text() == "mine"


def test_explain_calls_the_model_once_and_is_shown_in_a_notebook() -> None:
    """A compiled model keeps its options; text of the user's is escaped."""
    calls = []

    def model(x: torch.Tensor, unit: str = "") -> torch.Tensor:
        torch._dynamo.graph_break(unit)
        calls.append(unit)
        return x + 1

    compiled = torch.compile(model, backend="eager")
    recording = tcw.explain(compiled, torch.ones(3), unit="<script>")
    assert calls == ["<script>"]
    assert (len(recording.breaks), recording.kernels) == (1, ())
    shown = recording._repr_html_()
    assert shown.startswith("<pre")
    assert "<script" not in shown
    assert "1 break" in shown
    module = torch.compile(torch.nn.Linear(2, 2), backend="eager")
    assert tcw.explain(module, torch.ones(1, 2)).graphs == 1
    with pytest.raises(TypeError):
        tcw.explain(compiled)
