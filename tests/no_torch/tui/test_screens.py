"""The screens of the design, as text and as pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Golden
from tests.no_torch.tui.conftest import Open, Reader
from workbench.tui.commands import GOES

SIZES = [(80, 24), (120, 40), (200, 55)]


async def _overview(reader: Reader) -> None:
    pass


async def _break(reader: Reader) -> None:
    await reader.press("j", "j", "enter")


async def _linked(reader: Reader) -> None:
    await reader.press("1")
    await reader.go("source")
    while reader.bench.view.ref.rpartition(":")[2] != "19":
        before = reader.bench.view.ref
        await reader.press("k" if int(before.rpartition(":")[2]) > 19 else "j")


async def _fusion(reader: Reader) -> None:
    await reader.go("fusion")


async def _recompiles(reader: Reader) -> None:
    await reader.press("enter")


SCREENS = {
    "s1-overview": _overview,
    "s2-break": _break,
    "s3-linked": _linked,
    "s4-fusion": _fusion,
    "s5-recompiles": _recompiles,
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCREENS)
async def test_screen(
    name: str, size: tuple[int, int], open_trace: Open, block_file: Path, golden: Golden
) -> None:
    async with open_trace(block_file, size) as reader:
        await SCREENS[name](reader)
        shown = f"tui/{name}-{size[0]}x{size[1]}"
        golden(f"{shown}.txt", reader.text())
        golden(f"{shown}.svg", reader.svg())


@pytest.mark.parametrize("theme", ["light", "mono"])
async def test_theme(theme: str, open_trace: Open, block_file: Path, golden: Golden) -> None:
    async with open_trace(block_file, (120, 40), theme) as reader:
        await _linked(reader)
        golden(f"tui/s3-linked-120x40-{theme}.svg", reader.svg())


async def test_memory(open_trace: Open, block_file: Path, golden: Golden) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("memory")
        golden("tui/s7-memory-120x40.svg", reader.svg())


async def test_no_line_is_too_long_or_too_short(open_trace: Open, block_file: Path) -> None:
    """Nor while the terminal is resized."""
    async with open_trace(block_file, (40, 30)) as reader:
        for name, _ in GOES:
            await reader.go(name)
            for width in (40, 77, 99, 100, 149, 150, 180, 300):
                await reader.pilot.resize_terminal(width, 30)
                wanted = [width] * 30
                await reader.until(lambda wanted=wanted: reader.cells() == wanted)  # type: ignore[misc]
