"""The memory chart on the screen."""

from __future__ import annotations

from pathlib import Path

from tests.no_torch.tui.conftest import Open
from tests.no_torch.tui.reader import select_buffer


async def test_a_reuse_that_is_looked_at(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file, (80, 24)) as reader:
        await select_buffer(reader, "buf16")
        assert "buf18 takes the memory of buf16" in reader.text()
