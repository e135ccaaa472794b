"""Graph breaks taken away by edits and settings, tried on a real model with our own engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import GraphBreak, Settings, Source, Trial
from tcw.workbench.cli.trials import trials
from tests.cpu.worker.recorded import recorded
from tests.cpu.worker.test_trials import Suggested

MODEL = """
import math
import torch
from helper import halved

def model(x, factor=0.5):
    y = halved(torch.relu(x))
    print("half", tuple(y.shape))
    y = y * y.sum().item()
    y = y * math.exp(factor)
    return y + 1

example_inputs = [(torch.ones(8, 8), 0.5), (torch.ones(8, 8), 0.25), (torch.ones(8, 8), 0.125)]
"""
HELPER = """
import torch

@torch.compiler.disable
def halved(x):
    return x / 2
"""
SUGGESTED = (
    Suggested("drop", ("--edit", "drop:8")),
    Suggested("later", ("--edit", "later:8")),
    Suggested("text", ("--set", "reorderable_logging_functions.add(print)", "--edit", "text:8")),
    Suggested("item", ("--set", "capture_scalar_outputs = True")),
    Suggested("helper", ("--edit", "undisable:helper.py:4")),
    Suggested("tensor", ("--as-tensor", "factor", "--edit", "torch-math:10")),
    Suggested("wrong", ("--edit", "drop:helper.py:99")),
    Suggested("unknown", ("--set", "captured_scalar_outputs = True")),
)


def written(folder: Path) -> Path:
    """Both files in this folder."""
    (folder / "model.py").write_text(MODEL)
    (folder / "helper.py").write_text(HELPER)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("edited"))


def tried(folder: Path, *names: str) -> dict[str, Trial]:
    settings = Settings(file=str(folder / "model.py"), engine="tcw", grad="no-grad")
    suggested = [one for one in SUGGESTED if one.id in names]
    return {trial.id: trial for trial in trials(settings, suggested)}


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Trial]:
    """Each is measured against the base, which takes seconds: those that are like others are in a
    long test."""
    return tried(folder, "text", "helper", "tensor", "later", "wrong", "unknown")


def check_break_gone(trial: Trial) -> None:
    assert "breaks" in trial.words
    assert trial.before is not None, trial.reason
    assert trial.equal


@pytest.mark.long
def test_each_edit_and_setting_takes_its_break_away(found: dict[str, Trial]) -> None:
    for name in ("text", "helper"):
        check_break_gone(found[name])
    assert found["tensor"].before is not None, found["tensor"].reason
    assert found["tensor"].equal
    assert "compiles" in found["tensor"].words


@pytest.mark.long
def test_the_diff_has_the_users_lines(found: dict[str, Trial]) -> None:
    assert '+    print("half", f"{tuple(y.shape)}")\n' in found["text"].diff
    assert "helper.py" in found["helper"].diff


@pytest.mark.long
def test_a_statement_that_goes_and_a_setting_by_itself(folder: Path) -> None:
    found = tried(folder, "drop", "item")
    for one in found.values():
        check_break_gone(one)
    assert '-    print("half", tuple(y.shape))\n+    pass\n' in found["drop"].diff
    assert found["item"].diff == ""


@pytest.mark.long
def test_what_cannot_be_tried_says_why(found: dict[str, Trial]) -> None:
    assert found["later"].reason == "later:8: y is assigned again after it"
    assert found["wrong"].reason == "drop:helper.py:99: no statement is on line 99"
    assert "torch._dynamo.config has no captured_scalar_outputs" in found["unknown"].reason


@pytest.mark.long
def test_the_files_are_as_they_were(found: dict[str, Trial], folder: Path) -> None:
    assert (folder / "model.py").read_text() == MODEL
    assert (folder / "helper.py").read_text() == HELPER
    assert sorted(path.name for path in folder.iterdir()) == ["helper.py", "model.py"]


def test_an_edited_file_is_recorded_as_it_ran(tmp_path: Path) -> None:
    edits = ("drop:8", "undisable:helper.py:4", "item:9")
    made = recorded(written(tmp_path), None, edits=edits)
    got, file = made.recording, str(made.file)
    assert not got.all(GraphBreak)
    assert got.line(file, 8) == "    pass"
    assert {source.file for source in got.all(Source)} >= {file}


def test_an_edit_that_does_not_fit_is_a_failure_with_its_line(tmp_path: Path) -> None:
    got = recorded(written(tmp_path), None, until="run", edits=("drop:9",))
    assert got.failure.message == "--edit drop:9: no call statement or assertion is on that line"
    assert got.line == 9


def test_an_argument_that_is_not_there_is_named(tmp_path: Path) -> None:
    got = recorded(written(tmp_path), None, until="run", as_tensors=("faktor",))
    assert "no call has an argument 'faktor'" in got.failure.message
    assert "factor, x" in got.failure.hint
