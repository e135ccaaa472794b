"""Two runs, what changed between them, and what it cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, WhatIf
from tests.no_torch.tui.conftest import Open, encoded
from tests.no_torch.two_runs import two_runs, whatif


@pytest.fixture(scope="session")
def runs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("traces") / "runs.tcw", two_runs())


def written(path: Path, records: list[AnyRecord]) -> Path:
    path.write_bytes(encoded(records))
    return path


async def test_a_difference_in_the_noise_wins_nothing(open_trace: Open, tmp_path: Path) -> None:
    records = [
        structs.replace(whatif(), difference=0.4e-6) if isinstance(two_run, WhatIf) else two_run
        for two_run in two_runs()
    ]
    async with open_trace(written(tmp_path / "runs.tcw", records)) as reader:
        await reader.go("what-if")
        assert "≈ No measurable difference" in reader.text()
        assert "in noise" in reader.text()


async def test_what_was_not_measured_says_why(open_trace: Open, tmp_path: Path) -> None:
    reason = "extern_kernels.addmm is a call, which is timed with its graph"
    unknown = structs.replace(whatif(), before=None, after=None, reason=reason)
    records = [unknown if isinstance(two_run, WhatIf) else two_run for two_run in two_runs()]
    async with open_trace(written(tmp_path / "runs.tcw", records)) as reader:
        await reader.go("what-if")
        assert "Cost not measured" in reader.text()
        assert reason in reader.text()


async def test_a_run_that_is_compared_with_none(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("what-if")
        assert "this run is compared with no other" in reader.text()


async def test_raw_code(open_trace: Open, runs_file: Path) -> None:
    async with open_trace(runs_file, (120, 60)) as reader:
        await reader.go("what-if")
        assert "tidied" in reader.text()
        await reader.press("R")
        assert "+8 −2 lines" in reader.text()
        assert "tidied" not in reader.text()
