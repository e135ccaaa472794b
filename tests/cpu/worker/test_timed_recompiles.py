"""What is compiled while the calls are repeated for timing is recorded like any compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import EagerFallback, Graph, Recompile, Speed
from tcw.viewers.summary import summarise
from tcw.viewers.summary.profile import profiles_of
from tests.cpu.worker.recorded import recorded

HISTORY = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history.append(x.shape[0])
        return x * len(self.history)

model = Net()
example_inputs = (torch.randn(8),)
"""
QUIET = """
import torch
model = torch.nn.Linear(4, 4)
example_inputs = (torch.randn(8, 4),)
"""


def test_a_model_that_recompiles_in_each_call_is_found_with_one_input_set(tmp_path: Path) -> None:
    found = recorded(tmp_path, HISTORY, until="run", engine="tcw", grad="no-grad")
    again = found.all(Recompile)
    assert len(again) > 2
    assert {one.call for one in again} == {0}
    assert {one.location.line for one in again if one.location} == {10}
    (fallback,) = found.all(EagerFallback)
    assert fallback.kind == "recompile-limit"
    (speed,) = found.all(Speed)
    assert speed.compiled_again
    titles = [finding.title for finding in summarise(found.recording).findings]
    assert any("the timed calls recompiled forward" in title for title in titles)


def test_a_profile_names_the_guard_that_fails_in_its_rounds(tmp_path: Path) -> None:
    found = recorded(
        tmp_path, HISTORY, until="run", engine="tcw", grad="no-grad", profile=True, rounds=20
    )
    assert {recompile.call for recompile in found.all(Recompile)} == {0}
    (profile,) = profiles_of(found.recording)
    assert profile.head.compiled_again
    assert profile.verdict.headline == "Recompiled during timing"
    first = profile.causes[0]
    assert first.place is not None
    assert first.place.line == 10
    assert "forward runs eagerly since the recompile limit was reached" in first.notes
    assert "of 1 call compiled again" not in " ".join(first.notes)


@pytest.mark.parametrize("profile", [False, True])
def test_a_model_that_does_not_leaves_no_record_of_its_timing(
    tmp_path: Path, profile: bool
) -> None:
    found = recorded(tmp_path, QUIET, until="run", engine="tcw", grad="no-grad", profile=profile)
    assert found.all(Recompile) == []
    assert len([graph for graph in found.all(Graph) if graph.kind == "captured"]) == 1
    (speed,) = found.all(Speed)
    assert speed.compiled_again == 0
