"""The memory chart on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Golden
from tests.no_torch.tui.conftest import Open


@pytest.mark.parametrize("size", [(80, 24), (220, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_reuse_that_is_looked_at(
    size: tuple[int, int], open_trace: Open, block_file: Path, golden: Golden
) -> None:
    async with open_trace(block_file, size) as reader:
        await reader.go("memory")
        pane = reader.pane("memory")
        pane.go(next(i for i, row in enumerate(pane.rows) if row.key == "buffer:buf16"))
        await reader.settle()
        assert "buf18 takes the memory of buf16" in reader.text()
        golden(f"tui/s7-reuse-{size[0]}x{size[1]}.txt", reader.text())
        golden(f"tui/s7-reuse-{size[0]}x{size[1]}.svg", reader.svg())
