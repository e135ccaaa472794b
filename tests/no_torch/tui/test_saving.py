"""A picture of the screen, other settings, and the number of a pane."""

from __future__ import annotations

from pathlib import Path

from tests.no_torch.tui.conftest import Drive, Open


async def test_a_picture_of_the_screen(open_trace: Open, block_file: Path, tmp_path: Path) -> None:
    async with open_trace(block_file) as reader:
        file = tmp_path / "shot.svg"
        await reader.press("x", "ctrl+u")
        await reader.type(str(file))
        await reader.press("enter")
        await reader.settle()
        assert file.read_text().startswith("<svg")
        assert "saved" in reader.lines()[-1]
        await reader.press("x", "ctrl+u")
        await reader.type(str(file))
        await reader.press("enter")
        assert "already" in reader.lines()[-1]


async def test_settings_compile_again_and_compare(drive: Drive) -> None:
    """Once there is something to compare with."""
    async with drive() as driver:
        await driver.press("c", "comma")
        assert "● inductor" in driver.text()
        pane = driver.pane("settings")
        row = next(i for i, row in enumerate(pane.rows) if "max-autotune" in row.text)
        pane.go(row)
        await driver.press("enter")
        rerun = driver.sent[-1]
        assert rerun.settings.mode == "max-autotune"  # type: ignore[attr-defined]
        assert rerun.because == "mode max-autotune"  # type: ignore[attr-defined]
        assert rerun.compare_with == 1  # type: ignore[attr-defined]
        assert driver.bench.view.run == 2


async def test_the_number_of_a_pane_is_not_read_as_a_count(
    open_trace: Open, block_file: Path
) -> None:
    async with open_trace(block_file) as reader:
        titles = [line.partition("│")[2] for line in reader.lines()]
        assert any(line.startswith("[3] findings") for line in titles)
        assert not any(line.startswith(" 3 findings") for line in titles)
