"""Suggestions tried on a call that a script makes."""

from __future__ import annotations

from pathlib import Path

from tcw.compiler.trace.records import Settings
from tcw.workbench.cli.trials import trials
from tests.cpu.worker.test_trials import Suggested

SCRIPT = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        print("calculating")
        return torch.relu(x) * 2

net = torch.compile(Net())
for rows in (2, 4):
    net(torch.ones(rows, 8))
"""


def test_a_later_call_is_tried(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    settings = Settings(file=str(file), engine="tcw", script_call=True, profiled_call=2)
    drop, mark = trials(
        settings,
        [Suggested("drop", ("--edit", "drop:6")), Suggested("mark", ("--mark-dynamic", "x:0"))],
    )
    for one in (drop, mark):
        assert one.before is not None, one.reason
        assert one.equal
    assert "breaks 1 → 0" in drop.words
    assert file.read_text() == SCRIPT
