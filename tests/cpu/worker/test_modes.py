"""The modes table of a real model, as far as our own engine goes: the others take longer."""

from __future__ import annotations

from pathlib import Path

from tcw.compiler.trace.records import Settings
from tcw.workbench.cli.modes import Way, modes

MODEL = """
import torch

def model(x):
    return torch.softmax(x, -1) * 2

example_inputs = (torch.randn(1024, 1024),)
"""


def test_a_mode_has_its_time_memory_and_compile_seconds(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    eager, row = modes(Settings(file=str(file), timeout=240.0), ways=[Way("tcw")])
    assert eager.name == "eager"
    assert row.eager == eager.time
    assert row.time is not None
    assert row.time.runs >= 3
    assert row.compile_seconds > 0
    assert row.compile_cpu_seconds is not None
    assert eager.peak_bytes is not None
    assert row.peak_bytes is not None
    assert eager.peak_bytes > 6 << 20, "the softmax and its double are there at once"
    assert row.peak_bytes < 6 << 20, "one loop, one result"
