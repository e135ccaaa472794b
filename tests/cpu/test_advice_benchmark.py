"""The benchmark of advice finds out a wrong fix without asking tcw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.advice import checked, tried
from benchmarks.advice_cases import Case, Cause, Fix, cases
from benchmarks.advice_runs import Run, run

PROGRAM = """import torch

SEEN = []


def model(x):
    x = x + 1
    if x.sum() > 0:
        x = x * 2
    print("seen")
    return x.cos()


example_inputs = [(torch.ones(4),), (-torch.full((4,), 3.0),)]
"""


def patch(old: str, new: str) -> str:
    number = PROGRAM.splitlines().index(old) + 1
    added = "".join(f"+{line}\n" for line in new.splitlines())
    count = len(new.splitlines())
    return f"--- program.py\n+++ program.py\n@@ -{number} +{number},{count} @@\n-{old}\n{added}"


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    file = tmp_path_factory.mktemp("advice") / "program.py"
    file.write_text(PROGRAM)
    cause = Cause("break", PROGRAM.splitlines().index("    if x.sum() > 0:") + 1)
    return Case(file, "", "", (cause,), (), "", train=False)


@pytest.fixture(scope="module")
def eager(case: Case) -> Run:
    return run(case.file)


@pytest.fixture(scope="module")
def before(case: Case, eager: Run) -> Run:
    return run(case.file, Fix(), eager=eager)


def test_breaks_and_compiles_are_counted(before: Run) -> None:
    assert (before.graphs, before.breaks, before.compiles) == (3, 3, 4)
    assert not before.differs


TWICE = "        x = x * 2"
PRINTS = '    print("seen")'


@pytest.mark.parametrize(
    ("fix", "safety", "wrong"),
    [
        (Fix(patch=patch(PRINTS, "    pass")), "changes behaviour", ""),
        (Fix(patch=patch(PRINTS, "    pass")), "same results", "changes what is printed"),
        (Fix(patch=patch("    if x.sum() > 0:", "    if True:")), "", "changes results: call 2"),
        (Fix(settings=("torch._dynamo.config.allow_rnn = True",)), "", "changes nothing"),
        (Fix(settings=("torch._dynamo.config.no_such_setting = True",)), "", "raises"),
        (Fix(compile={"fullgraph": True}), "", "raises"),
        (Fix(before_calls=("x = x * 2",)), "", "changes results"),
        (Fix(patch=patch(TWICE, TWICE + "\n        torch._dynamo.graph_break()")), "", "worse"),
        (Fix(settings=("torch._dynamo.config.disable = True",)), "", "less runs"),
        (Fix(patch=patch(PRINTS, "    pass").replace("seen", "other")), "", "does not apply"),
    ],
)
def test_a_wrong_fix_fails(
    case: Case, eager: Run, before: Run, fix: Fix, safety: str, wrong: str
) -> None:
    _, said = tried(case, fix, eager, before, safety)
    assert wrong in said
    assert bool(wrong) == bool(said)


@pytest.mark.parametrize("name", ["branch_on_value", "transposed_input", "item_in_checkpoint"])
def test_a_program_and_its_fix_are_in_order(name: str) -> None:
    (case,) = cases(name)
    assert checked(case) == ""


def test_gradients_are_compared() -> None:
    """A peak that is not detached has a gradient of its own."""
    (case,) = cases("item_in_checkpoint")
    fixes: Any = tuple(fix.replace(".detach()", "") for fix in case.fixes)
    assert "changes results" in checked(replace(case, fixes=fixes))


def test_a_process_that_dies_is_told(tmp_path: Path) -> None:
    file = tmp_path / "dies.py"
    file.write_text("import os\n\nos._exit(3)\nexample_inputs = ()\n")
    assert "3" in run(file).error


@pytest.mark.parametrize(("safety", "wrong"), [("same results", "history"), ("idea", "")])
def test_tensors_for_numbers_in_a_list_are_no_same_results(safety: str, wrong: str) -> None:
    """What reads the list gets something else, with its autograd graph."""
    (case,) = cases("item_is_logged")
    item = "`    history.append(loss.item())` -> `    history.append(loss)`"
    eager = run(case.file)
    before = run(case.file, Fix(), eager=eager)
    _, said = tried(case, replace(case, fixes=(item,)).reference(), eager, before, safety)
    assert wrong in said
    assert bool(wrong) == bool(said)
