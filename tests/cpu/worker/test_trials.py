"""Suggestions tried on a real model with our own engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tcw.compiler.trace.records import Settings
from tcw.workbench.cli.trials import trials

MODEL = """
import torch

def model(x):
    return torch.softmax(x, -1) * 2

example_inputs = [(torch.randn(rows, 256),) for rows in (64, 32, 16)]
"""


@dataclass(frozen=True)
class Suggested:
    id: str
    options: tuple[str, ...] = ()
    words: str = "try it"
    group: str = ""


def test_a_veto_and_a_mark_are_measured_against_the_base(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    settings = Settings(file=str(file), engine="tcw", grad="no-grad")
    veto, unknown, mark = trials(
        settings,
        [
            Suggested("veto", ("--override", "tcw/0/0/inference/fuse/exp+sum=apart")),
            Suggested("unknown", ("--override", "tcw/0/0/inference/fuse/no+such=apart")),
            Suggested("mark", ("--mark-dynamic", "x:0")),
        ],
    )
    for one in (veto, unknown, mark):
        assert one.before is not None, one.reason
        assert one.after is not None
        assert one.equal
        assert one.noise > 0
    assert "met no decision" in unknown.reason
    assert "in these calls: compiles 2 → 1" in mark.words
