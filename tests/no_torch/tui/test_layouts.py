"""Panes as the reader wants them, and what is remembered of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tcw.workbench.tui import remembered
from tests.no_torch.tui.conftest import Drive, Open


async def test_any_pane_in_any_place(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("source")
        await reader.press("tab")
        before = reader.focus()
        await reader.choose("show memory here")
        names = [pane.pane for pane in reader.bench.stage.panes]
        assert "memory" in names
        assert before not in names
        assert reader.focus() == "memory"
        await reader.choose("show output beside")
        assert len(reader.bench.stage.panes) == 4
        await reader.choose("show guards beside")
        assert "at most 4 panes" in reader.lines()[-1]
        await reader.press("Z")
        assert len(reader.bench.stage.panes) == 3
        await reader.choose("put the panes back")
        assert [pane.pane for pane in reader.bench.stage.panes] == ["source", "graph", "kernel"]


async def test_closing_down_to_one(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("recompiles")
        for _ in range(6):
            await reader.press("2", "Z")
            assert reader.cells() == [120] * 40
        assert len(reader.bench.stage.panes) == 1
        assert "the last pane stays" in reader.lines()[-1]


async def test_the_rule_is_dragged(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("source")
        pane = reader.pane("graph")
        x, y, width = pane.region.x, pane.region.y + 5, pane.size.width
        await reader.pilot.mouse_down(offset=(x, y))
        await reader.pilot.hover(offset=(x - 8, y))
        await reader.pilot.mouse_up(offset=(x - 8, y))
        await reader.settle()
        assert abs(reader.pane("graph").size.width - width - 8) <= 1
        assert reader.cells() == [120] * 40


async def test_a_title_is_dragged(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("recompiles")
        pane = reader.pane("guards")
        x, y, height = pane.region.x + 9, pane.region.y, pane.size.height
        await reader.pilot.mouse_down(offset=(x, y))
        await reader.pilot.hover(offset=(x, y - 4))
        await reader.pilot.mouse_up(offset=(x, y - 4))
        await reader.settle()
        assert reader.pane("guards").size.height == height + 4


async def test_it_is_remembered_by_model(open_trace: Open, block_file: Path) -> None:
    async with open_trace(block_file) as reader:
        await reader.go("source")
        await reader.choose("show memory beside")
        await reader.press("plus", "plus")
        await reader.choose("light theme")
        widths = [pane.size.width for pane in reader.bench.stage.panes]
        await reader.press("q")
    async with open_trace(block_file) as reader:
        assert reader.bench.navigator.arrangement == "overview"
        await reader.go("source")
        assert [pane.pane for pane in reader.bench.stage.panes][-1] == "memory"
        assert [pane.size.width for pane in reader.bench.stage.panes] == widths
        assert reader.bench.look.name == "light"
    async with open_trace(block_file, theme="dark") as reader:
        assert reader.bench.look.name == "dark"


async def test_what_cannot_be_remembered_is_said(drive: Drive, tmp_path: Path) -> None:
    async with drive() as driver:
        await driver.choose("break at graph break")
        await driver.press("q")
    (file,) = (tmp_path / "cache" / "tcw" / "workbench").iterdir()
    file.write_bytes(b"{broken")
    async with drive() as driver:
        assert driver.bench.view.breakpoints == ()
        assert "as for a new file" in driver.lines()[-1]


async def test_breakpoints_are_remembered_for_the_next_drive(drive: Drive) -> None:
    async with drive() as driver:
        await driver.choose("break at graph break")
        await driver.press("q")
    async with drive() as driver:
        assert [one.kind for one in driver.bench.view.breakpoints] == ["break"]
        assert [type(command).__name__ for command in driver.sent] == ["SetBreakpoints"]


def test_the_file_is_private_and_damage_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remembered.remember("model.py", remembered.Remembered(theme="light"))
    folder = tmp_path / "tcw" / "workbench"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    nothing = remembered.Remembered()
    assert remembered.recall("model.py")[0].theme == "light"
    assert remembered.recall("other.py") == (nothing, "")
    file.write_bytes(b'{"theme":"light","own":{"source":{"columns":[[["nothing",1,0]]]}},"new":1}')
    assert remembered.recall("model.py") == (remembered.Remembered(theme="light"), "")
    file.write_bytes(b"{broken")
    assert remembered.recall("model.py") == (nothing, f"{file} is damaged")
    owner = os.geteuid()
    with monkeypatch.context() as context:
        context.setattr(remembered.os, "geteuid", lambda: owner + 1)
        found, why = remembered.recall("model.py")
        assert found == nothing
        assert "belongs to user" in why
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    assert remembered.recall("model.py")[0] == nothing
    assert "symbolic link" in remembered.recall("model.py")[1]
    file.unlink()
    os.mkfifo(file)
    assert remembered.recall("model.py") == (nothing, f"{file}: it is a pipe (FIFO), not a file")
    folder.chmod(0o777)
    assert "open to others" in remembered.recall("model.py")[1]


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
