"""The modes table, peak memory and the optimizer's step where there is a GPU."""

from __future__ import annotations

from pathlib import Path

import torch

from tcw.compiler.measure.memory.peak import peak_bytes
from tcw.compiler.trace.records import AnyRecord, Settings
from tcw.compiler.trace.records.profile import Account
from tcw.workbench.cli.modes import Way, modes
from tcw.workbench.worker.client import record

MODEL = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_device("cuda")
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
example_inputs = (torch.randn(512, 256),)
optimizer = torch.optim.AdamW(model.parameters())
"""
SIZE = 64 << 20


def test_cuda_graphs_are_measured_on_a_gpu(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    ways = [Way("inductor"), Way("inductor", "reduce-overhead")]
    rows = list(modes(Settings(file=str(file), grad="no-grad", timeout=300.0), ways=ways))
    assert [row.name for row in rows] == ["eager", "inductor", "inductor reduce-overhead"]
    for row in rows:
        assert row.reason == ""
        assert row.time is not None
        assert row.peak_bytes


def test_peak_memory_is_that_of_the_card() -> None:
    ones = torch.ones(SIZE // 4, device="cuda")
    found = peak_bytes(lambda: ((ones + 1) * 2).sum(), "cuda")
    assert found is not None
    assert 2 * SIZE <= found < 3 * SIZE, (
        "graphs that other tests captured do not count as its memory"
    )


def test_the_optimizer_s_step_is_timed(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    records: list[AnyRecord] = []
    settings = Settings(file=str(file), grad="train", profile=True, timeout=400.0)
    end = record(settings, trace=None, on_record=records.append)
    assert end.status == "ok"
    found = [one for one in records if isinstance(one, Account) and one.phase == "step"]
    assert {one.side for one in found} == {"eager", "compiled"}
    assert all(one.measured.median > 0 for one in found)
