"""What a click does at the edges of the screen and on the rows of a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.no_torch.tui.conftest import Open


@pytest.mark.parametrize(
    ("words", "arrangement"), [("✗2", "break"), ("breaks", "break"), ("↻", "recompiles"),
     ("recompiles", "recompiles"), ("block.py", "overview"), ("replay", "overview")],
)  # fmt: skip
async def test_a_count_in_the_header_leads_to_what_it_counts(
    open_trace: Open, block_file: Path, words: str, arrangement: str
) -> None:
    async with open_trace(block_file) as reader:
        start = "guards"
        await reader.bench.show(start)
        await reader.settle()
        at = reader.lines()[0].index(words)
        await reader.pilot.click("#header", offset=(at, 0))
        await reader.settle()
        assert reader.bench.navigator.arrangement == arrangement


async def test_every_row_of_a_finding_opens_it(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        rows = reader.lines()
        first = next(y for y, row in enumerate(rows) if " ↻ " in row and " s  " in row)
        last = next(y for y in range(first, len(rows)) if not rows[y][12:].strip(" │"))
        assert last - first >= 3
        for y in range(first, last):
            await reader.pilot.click(offset=(40, y), times=2)
            await reader.settle()
            assert reader.bench.navigator.arrangement == "recompiles", rows[y]
            await reader.press("escape")
            assert reader.bench.navigator.arrangement == "overview"
