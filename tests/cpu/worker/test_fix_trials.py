"""Fixes that are tried in processes of their own: what is kept, and that nothing stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from msgspec import structs
from torch._dynamo.testing import CompileCounter

from tcw.compiler.trace.records import (
    FixTrial,
    GraphBreak,
    Numerics,
    Record,
    Settings,
    SourceChange,
    Waiting,
)
from tcw.workbench.worker.client import Trials, record
from tests.cpu.worker.recorded import Recorded, recorded

SEVERAL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x, scale):
        self.linear.weight.sum()
        y = self.linear(x)
        print("seen")
        if y.abs().max() > 8:
            y = y.clamp(-8, 8)
        return y * scale.item()

model = Net()
example_inputs = [(torch.randn(rows, 4), torch.tensor(2.0)) for rows in (4, 6, 8)]
"""


def trials(made: Recorded) -> dict[str, FixTrial]:
    """By the first line of the code."""
    return {trial.advice.code.split("\n")[0]: trial for trial in made.all(FixTrial)}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("several"), SEVERAL, tries=True)


def test_each_fix_is_tried_and_all_together(several: Recorded, tmp_path: Path) -> None:
    made = several
    found = trials(made)
    clamp, number = found["y = y.clamp(-8, 8)"], found["return y * scale"]
    printing = found["torch._dynamo.config.reorderable_logging_functions.add(print)"]
    for trial in (clamp, number, printing):
        assert trial.kept
        assert trial.results == "same"
        assert trial.before
        assert trial.after
        assert trial.after.breaks == trial.before.breaks - 1 == 2
        assert trial.finding in trial.gone
    assert printing.effect
    assert not clamp.effect
    together = made.all(FixTrial)
    (whole,) = [trial for trial in together if not trial.finding]
    assert whole.kept
    assert whole.after is not None
    assert whole.after.breaks == 0
    assert whole.before is not None
    assert whole.after.compiles < whole.before.compiles
    # the recording itself is what it would be without trials
    assert len(made.all(GraphBreak)) == len(recorded(tmp_path, SEVERAL).all(GraphBreak))


def test_a_patch_has_the_change(several: Recorded) -> None:
    made = several
    trial = trials(made)["y = y.clamp(-8, 8)"]
    text = made.file.read_text()
    for line in trial.patch.splitlines():
        if line.startswith("-") and not line.startswith("---"):
            text = text.replace(line[1:] + "\n", "", 1)
    assert "if y.abs()" not in text
    assert "+        y = y.clamp(-8, 8)" in trial.patch.splitlines()


WRONG = """
import torch

def model(x):
    y = x + 1
    if y.sum() > 0:
        y = y * 2
    return y + {more}

example_inputs = [(torch.ones(2, 2),), (-3 * torch.ones(2, 2),)]
"""


def test_a_fix_is_compared_with_the_calls_without_it(tmp_path: Path) -> None:
    kept = trials(recorded(tmp_path, WRONG.format(more="0"), tries=True))
    assert any(trial.kept for trial in kept.values())
    for code, trial in kept.items():
        if trial.kept:
            assert trial.results in ("same", "within"), code


DETACHES = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x))

block = Block()
run = torch.compile(block)
x = torch.ones(2, 4)
for _ in range(3):
    x = run(x)
x.sum().backward()
"""


def test_a_change_that_cuts_training_gives_other_results(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(DETACHES)
    line = DETACHES.split("\n").index("    x = run(x)") + 1
    cut = SourceChange(
        file=str(file), line=line, end_line=line, text="    x = run(x.detach().requires_grad_())"
    )
    base = Settings(file=str(file), until="capture")
    compared: list[Numerics] = []

    def tries(runs: Trials) -> Iterator[Record]:
        for number, changes in ((1, ()), (2, ()), (3, (cut,))):
            made = runs.run(number, structs.replace(base, changes=changes), 120.0)
            assert isinstance(made[-1], Waiting)
            assert not made[-1].lost
            compared.extend(record for record in made if isinstance(record, Numerics))
        return iter(())

    record(base, trace=None, on_record=lambda _: None, tries=tries)
    same, detached = compared
    assert same.equal
    assert detached.within is False


def test_code_that_depends_on_the_run_is_no_reason_for_a_fix(tmp_path: Path) -> None:
    text = SEVERAL.replace("return y * scale.item()", "return y * torch.rand(1, dtype=y.dtype)")
    for trial in recorded(tmp_path, text, tries=True).all(FixTrial):
        assert trial.results == "same", trial.advice  # each run draws the same numbers


def test_a_trial_that_crashes_is_no_fix(tmp_path: Path) -> None:
    text = """
import os, torch

def model(x):
    print("a break")
    return x + 1

if os.path.exists("{flag}"):
    os._exit(7)
open("{flag}", "w").close()
example_inputs = (torch.ones(2),)
"""
    made = recorded(tmp_path, text.format(flag=tmp_path / "ran"), tries=True)
    assert made.end.status == "ok"
    assert not any(trial.kept for trial in made.all(FixTrial))


def test_a_kept_fix_works_with_torch_alone(tmp_path: Path) -> None:
    text = SEVERAL.replace('        print("seen")\n', "")
    made = recorded(tmp_path, text, tries=True, grad="train")
    trial = trials(made)["return y * scale"]
    assert trial.kept
    names: dict[str, object] = {}
    exec(text.replace("return y * scale.item()", "return y * scale"), names)
    counter = CompileCounter()
    torch._dynamo.reset()
    model = torch.compile(names["model"], backend=counter)  # type: ignore[arg-type]
    model(*names["example_inputs"][0])  # type: ignore[index]
    assert trial.after
    assert counter.frame_count == trial.after.graphs


LOOP = """
import torch

weights = [torch.randn(4, 4) for _ in range(3)]

def model(x):
    for weight in weights:
        x = (x @ weight).relu()
        print(end="")
        x = x - x.mean()
    return x

example_inputs = (torch.randn(3, 4),)
"""


def test_a_fix_that_captures_what_ran_in_python_is_kept(tmp_path: Path) -> None:
    """The loop itself stays in Python: its body is a function that torch compiles."""
    found = trials(recorded(tmp_path, LOOP, tries=True))
    trial = found["def model_step(weight, x):"]
    assert trial.kept
    assert trial.before is not None
    assert trial.after is not None
    assert (trial.before.graphs, trial.after.graphs) == (0, 2)
    assert trial.results == "same"
