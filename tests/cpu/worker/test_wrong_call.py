"""A kernel that computes something else than its graph: `tcw explain` finds it in a wrong call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler
from tcw.compiler.trace.records import KernelPrecision, OutputError, WrongStage
from tcw.viewers.recording import Recording
from tcw.workbench.worker.differences import _first_like
from tests.cpu.command_line import tcw_process
from tests.cpu.measure.planted import planted

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)

MODEL = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(16, 32)

    def forward(self, x):
        y = self.up(x).tanh()
        return torch.softmax(y, -1) * 7


torch.manual_seed(0)
model = Model()
example_inputs = (torch.randn(4, 16),)
"""


@pytest.mark.parametrize("engine", ["tcw", pytest.param("inductor", marks=pytest.mark.long)])
def test_the_first_wrong_kernel_of_a_wrong_call(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planted(tmp_path, r"(?<![\d.])7\.0(?!\d)", "7.5")
    environment = {"TCW_CACHE_DIR": str(tmp_path / "cache"), "CXX": made.compiler}
    if engine == "inductor":
        environment = {"PYTHONPATH": made.inductor}
    (tmp_path / "model.py").write_text(MODEL)
    options = ("--engine", engine, "--no-grad", "--trace", "run.tcw", "--json", "--no-try")
    done = tcw_process(tmp_path, "explain", "model.py", *options, **environment)
    assert done.code == 0, done.err
    assert made.times() > 0
    recording = Recording.open(tmp_path / "run.tcw")
    (stage,) = recording.all(WrongStage)
    assert (stage.stage, stage.right) == ("kernels", ("capture", "autograd", "passes"))
    kernel = recording.kernels[stage.kernel]
    assert any(at.line == 11 for at in kernel.locations)
    wrong = [one.kernel for one in recording.all(KernelPrecision) if one.within is False]
    assert wrong == [stage.kernel]
    (finding,) = [one for one in json.loads(done.out)["findings"] if one["kind"] == "numerics"]
    assert finding["line"] in (10, 11)


def test_the_first_call_that_is_about_as_wrong_is_looked_at() -> None:
    def error(call: int, size: float, path: str = "out", note: str = "") -> OutputError:
        return OutputError(call=call, path=path, max_abs=size, max_rel=size, note=note)

    worst = error(5, 1.0)
    others = [error(3, 0.5), error(2, 1e-7), error(1, 1.0, "grad x"), error(1, 1.0, note="nan")]
    assert _first_like([worst, *others]).call == 3
    assert _first_like([error(4, 0.0, note="nan"), *others]).note == "nan"
