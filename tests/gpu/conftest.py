from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tcw.viewers.recording import Recording
from tests.cpu.command_line import tcw_process

Explain = Callable[..., Recording]


@pytest.fixture(autouse=True, scope="session")
def gpu() -> None:
    """All tests of this folder run models on a GPU."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    return


@pytest.fixture
def explain(tmp_path: Path) -> Explain:
    """`tcw explain` on the text of a model file, in a process of its own."""

    def recorded(text: str, *options: str, hidden: bool = False) -> Recording:
        file, trace = tmp_path / "model.py", tmp_path / "trace.tcw"
        file.write_text(text, encoding="utf-8")
        command = ["explain", str(file), "--quiet", "--trace", str(trace), *options]
        done = tcw_process(tmp_path, *command, **({"CUDA_VISIBLE_DEVICES": ""} if hidden else {}))
        assert done.code == 0, done.out + done.err
        return Recording.open(trace)

    return recorded
