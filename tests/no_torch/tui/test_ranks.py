"""A folder of several processes in the workbench: the first difference of its ranks, and who did
the same; another rank is looked at against the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from tcw.compiler.trace.records import AnyRecord, Start
from tcw.viewers.kit.cells import cell_len
from tcw.viewers.panes.ranks import content
from tcw.viewers.reader import whole
from tcw.viewers.text.processes import Several
from tcw.workbench.request import folders
from tcw.workbench.request.folders import following, several_in
from tcw.workbench.tui.app import Workbench
from tests.no_torch.torch_logs.samples import log
from tests.no_torch.tui.conftest import Reader, encoded
from tests.no_torch.two_traces import after, before


def write(folder: Path, rank: int, records: list[AnyRecord]) -> None:
    ranked = [structs.replace(r, rank=rank) if isinstance(r, Start) else r for r in records]
    (folder / f"ddp-rank{rank}-1.tcw").write_bytes(encoded(ranked))


@pytest.fixture
def several(tmp_path: Path) -> Several:
    for rank in range(3):
        write(tmp_path, rank, after() if rank == 2 else before())
    return several_in(tmp_path)


async def test_ranks_are_looked_at_one_after_another(several: Several) -> None:
    app = Workbench(several.usual.file, "dark", several=several)
    async with app.run_test(size=(120, 40)) as pilot:
        reader = Reader(app, pilot)
        await reader.until(lambda: reader.bench.navigator.arrangement == "ranks")
        text = reader.text()
        assert "tcw block.py rank 0" in text
        assert "3 processes compiled, 2 different results" in text
        assert "✗  ranks   ranks 0, 1 have a graph break" in text
        assert text.index("✗  ranks") < text.index("● rank 0, rank 1")
        assert "▸ rank 2" in text
        pane = reader.pane("ranks")
        assert reader.focus() == "ranks"
        while pane.row.opens is None or not pane.row.text.startswith(" ▸ rank 2"):
            await reader.press("j")
        first = reader.bench
        await reader.press("enter")
        await reader.until(lambda: reader.bench is not first)
        await reader.until(lambda: reader.bench.navigator.arrangement == "differences")
        assert "tcw block.py rank 2" in reader.text()
        assert "a graph break gone: print()" in reader.text()
        await reader.press("at")
        assert reader.bench.navigator.arrangement == "ranks"
        assert "● rank 2" in reader.text()


def test_logs_that_were_only_looked_through_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "DECODED", 0)
    for rank in range(4):
        data = log("2.13").replace(b'"guard_count": ', b'"guard_count": %d' % (rank + 1))
        (tmp_path / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_bytes(data)
    several = several_in(tmp_path)
    assert len(several.unread) == 2
    view = whole(several.usual.recording).view
    view.several = several
    for width in (60, 100, 200):
        rows = content(view, width).rows
        (row,) = (one for one in rows if one.text.startswith(" ▸ rank 3"))
        assert "differs from rank 0 in compile 1" in row.text
        assert str(row.opens) == "process:3"
        assert all(cell_len(one.text) <= width for one in rows if not one.opens)


def test_one_recording_has_no_ranks(several: Several) -> None:
    rows = content(whole(several.usual.recording).view, 80).rows
    assert "tcw open FOLDER" in " ".join(row.text for row in rows)


def test_a_folder_is_read_again_only_if_it_changed(tmp_path: Path) -> None:
    write(tmp_path, 0, before())
    look = following(tmp_path)
    assert look() is None
    write(tmp_path, 1, before()[:-1])
    found = look()
    assert found is not None
    assert [process.name for process in found.processes] == ["rank 0", "rank 1"]
    assert look() is None
    write(tmp_path, 2, after())
    found = look()
    assert found is not None
    assert len(found.processes) == 3
    assert found.divergence is not None


async def test_processes_that_come_later_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder with one trace, that is shown; of two, the ranks; then a third rank comes."""
    monkeypatch.setattr("tcw.workbench.tui.app.LOOK_SECONDS", 0.05)
    write(tmp_path, 0, before())
    file = next(tmp_path.glob("*.tcw"))
    app = Workbench(file, "dark", follow=following(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        reader = Reader(app, pilot)
        await reader.until(lambda: reader.bench.state != "opening")
        assert reader.bench.navigator.arrangement != "ranks"
        write(tmp_path, 1, before())
        await reader.until(lambda: reader.bench.view.several is not None)
        assert "another process has compiled" in reader.text()
        await reader.go("ranks")
        assert "2 processes compiled, all the same" in reader.text()
        write(tmp_path, 2, after())
        await reader.until(lambda: "3 processes compiled, 2 different results" in reader.text())
        assert "✗  ranks   ranks 0, 1 have a graph break" in reader.text()
