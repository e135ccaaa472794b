"""Dynamo's steps on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import Step
from tests.no_torch.stepping import FILE
from tests.no_torch.tui.conftest import Open


@pytest.fixture
def steps_file(tmp_path: Path) -> Path:
    path = tmp_path / "attention.tcw"
    path.write_bytes(FILE.read_bytes())
    return path


async def test_the_panes_follow_the_instruction(open_trace: Open, steps_file: Path) -> None:
    """Also the one that the reader is in."""
    async with open_trace(steps_file) as reader:
        bench = reader.bench
        steps = [step for step in bench.recording.all(Step) if step.attempt == 1]
        await reader.go("steps")
        assert reader.focus() == "bytecode"
        for step in (steps[0], steps[60], steps[20], steps[-1]):
            bench.view.step = step
            bench.refresh_all()
            await reader.settle()
            pane = reader.pane("bytecode")
            assert pane.row.key == f"ip:{step.ip}"
            assert pane.visible_row(pane.cursor)
            source = reader.pane("source-step")
            if source.row.key:
                assert source.row.ref.endswith(f":{step.location.line}")
                assert source.visible_row(source.cursor)
