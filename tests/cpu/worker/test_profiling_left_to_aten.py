"""A graph that our engine leaves to ATen is timed, operation by operation."""

from __future__ import annotations

from pathlib import Path

from compiler.trace.records.profile import CompiledStep
from tests.cpu.worker.recorded import recorded

MODEL = """
import torch


def model(x):
    return torch.fft.fft(x) * x


example_inputs = (torch.randn(8, 64, dtype=torch.complex64),)
"""


def test_a_graph_of_complex_numbers(tmp_path: Path) -> None:
    made = recorded(
        tmp_path, MODEL, engine="tcw", grad="no-grad", until="run", profile=True, rounds=3
    )
    steps = [one for one in made.all(CompiledStep) if one.graph]
    assert {"aten._fft_c2c.default", "aten.mul.Tensor"} <= {one.name for one in steps}
    assert all(one.kind == "aten" and one.time is not None for one in steps)
