"""A driven compile on a real GPU: a veto splits a Triton kernel; what it costs is said."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from compiler.control.commands import Rerun
from compiler.trace.records import FusionPair, Kernel, Numerics, Settings, WhatIf
from tests.cpu.worker.driven import person
from viewers.recording import Recording

MODEL = """
import torch


def model(x):
    return torch.softmax(x, dim=-1) * 2 + x.amax(-1, keepdim=True)


example_inputs = (torch.randn(4096, 1024).cuda(),)
"""


def test_a_veto_makes_two_kernels_of_one_and_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL, encoding="utf-8")
    settings = Settings(file=str(file), grad="no-grad")
    with person(settings, tmp_path / "run.tcw") as one:
        one.until_end("continue")
        pair = next(p for p in one.all(FusionPair) if p.fused and p.phase == "commit")
        overruled = structs.replace(settings, overrides={pair.id: "apart"})
        one.send(Rerun(settings=overruled, because="veto", compare_with=1))
        assert one.waits().kind == "end"
    runs = Recording(one.records).runs
    kernels = {
        number: [k for k in run.all(Kernel) if k.language == "triton"]
        for number, run in runs.items()
    }
    assert len(kernels[2]) > len(kernels[1]) >= 1
    assert all(numerics.within for run in runs.values() for numerics in run.all(Numerics))
    said = one.all(WhatIf)
    assert said
    for found in said:
        print(found)
        assert found.reason or (found.before is not None and found.before.median > 0)
