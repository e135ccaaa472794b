"""A driven compile that takes a call apart on request, and compiles on as before."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from tcw.compiler.protocol.commands import Rerun
from tcw.compiler.trace.records import Account, CallProfile, Region, Run, Settings, Warned, WhatIf
from tcw.viewers.recording import Recording
from tcw.viewers.summary.profile import profile_of
from tests.cpu.worker.driven import person

MODEL = """
import torch

def model(x):
    return torch.softmax(torch.relu(x) * 2, -1)

example_inputs = (torch.randn(64, 64),)
"""


def test_a_run_is_profiled_on_request(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    settings = Settings(file=str(file), engine="tcw", grad="no-grad", record="steps", rounds=3)
    with person(settings) as one:
        one.goes()
        profiled = structs.replace(settings, profile=True)
        one.send(Rerun(settings=profiled, because="profile"))
        assert one.waits().kind == "end"
        assert [type(r) for r in one.records if isinstance(r, CallProfile)] == [CallProfile]
        part = Recording(one.records).runs[2]
        found = profile_of(part)
        assert found is not None
        assert {step.name for step in found.index.steps.values()}
        assert {account.side for account in part.all(Account)} == {"eager", "compiled"}
        assert part.all(Region)[0].locations[0].line == 5
        one.send(Rerun(settings=settings, because="again", compare_with=2, measure=False))
        assert one.waits().kind == "end"
        assert [run.number for run in one.all(Run)] == [1, 2, 3]
        assert not one.all(WhatIf)
        assert not [w.message for w in one.all(Warned) if w.asked]
        assert not Recording(one.records).runs[3].all(CallProfile)
