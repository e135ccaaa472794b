"""A constant that is changed in generated code, all the way through the command line. The kernel is
named with its line and its error, forward and backward, and cut out as a file that shows it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tcw.compiler.measure.precision.repro import tried
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler
from tcw.compiler.trace.reader import read_trace
from tcw.compiler.trace.records import Kernel, KernelPrecision
from tests.cpu.command_line import tcw
from tests.cpu.measure.planted import Planted, planted

pytestmark = pytest.mark.skipif(
    isinstance(find_compiler(), NoCompiler), reason="there is no C++ compiler"
)
WIDE = {"COLUMNS": "160", "NO_COLOR": "1"}
MODEL = """
import torch


def model(x, w):
    x = torch.relu(x @ w) + 1
    x = torch.sigmoid(x @ w) * 0.34375
    return torch.tanh(x @ w).sum(-1)


generator = torch.Generator().manual_seed(0)
weight = torch.randn(32, 32, generator=generator) / 8
example_inputs = (torch.randn(64, 32, generator=generator), weight.requires_grad_())
"""
LINE = MODEL[: MODEL.index("0.34375")].count("\n") + 1


@pytest.mark.long
@pytest.mark.parametrize("engine", ["tcw", "inductor"])
def test_it_is_named_and_cut_out(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.setenv("TCW_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    if engine == "tcw":
        made = planted(tmp_path, r"0\.34375f", "0.34575f")
        variable, value = "CXX", made.compiler
    else:
        made = planted(tmp_path, r"(?<=\()0\.34375", "0.34575")
        path = os.environ.get("PYTHONPATH", "")
        variable, value = "PYTHONPATH", os.pathsep.join(filter(None, (made.inductor, path)))
    with monkeypatch.context() as plant:
        plant.setenv(variable, value)
        names = named(engine, tmp_path, made)
    forward, backward = (cut_out(tmp_path, name) for name in names)
    assert forward != backward
    healed = tried(forward)
    assert healed.shows is False, healed


def named(engine: str, folder: Path, made: Planted) -> list[str]:
    """Profile the model; the names of the wrong kernels: the forward one, and its derivative."""
    command = ["profile", "model.py", "--train", "--engine", engine, "--verify"]
    done = tcw(folder, *command, "--rounds", "3", "--quiet", "--trace", "run.tcw", **WIDE)
    assert done.code == 1, done.err
    assert made.times() >= 2
    records = read_trace(folder / "run.tcw").records
    kernels = {record.id: record for record in records if isinstance(record, Kernel)}
    every = [record for record in records if isinstance(record, KernelPrecision)]
    wrong = [one for one in every if one.within is False]
    assert [one.graph for one in wrong] == ["0/0/forward", "0/0/backward"]
    assert all(one.within for one in every if one not in wrong)
    # each file was run in a process of its own, where the constant is changed as well
    assert all(one.reproduces is True for one in wrong), [one.repro_note for one in wrong]
    assert all("WRONG" in one.repro_note for one in wrong)
    for one in wrong:
        assert LINE in {place.line for place in kernels[one.kernel].locations}
    first = wrong[0]
    assert f"model.py:{LINE} {first.kernel} {kernels[first.kernel].name}" in done.words
    assert "is off by 0.0058" in done.words
    return [kernels[one.kernel].name for one in wrong]


def cut_out(folder: Path, name: str) -> str:
    """The text of the file that shows one kernel's error, out of the trace."""
    done = tcw(folder, "repro", "run.tcw", "--kernel", name, "-o", f"{name}.py", **WIDE)
    assert done.code == 1, done.err
    assert f"wrote {name}.py: according to the trace, run alone, it shows the error" in done.words
    assert "5.8e-03" in done.out
    text = (folder / f"{name}.py").read_text()
    assert "torch.sigmoid(x @ w) * 0.34375" in text
    assert "import compiler" not in text
    return text
