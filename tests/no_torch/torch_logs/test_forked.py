"""A log that a program and its forked children wrote together, as torch 2.11 does. The program
compiles `f`. Two children compile it for another size, and a function with a graph break each. Then
the program compiles `f` again."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tcw.compiler.trace.records import FrameStart, GraphBreak, Guards, Recompile
from tcw.compiler.trace.torch_logs.decoder import LogDecoder
from tcw.compiler.trace.torch_logs.log_digests import digest_log
from tcw.viewers.recording import Recording
from tcw.workbench.cli.main import main
from tcw.workbench.request.folders import has_several, processes_in, traces
from tests.no_torch.torch_logs.samples import FOLDER, entry

PIDS = (25547, 25571, 25572)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    packed = (FOLDER / "forked" / "torch-2.11.log.gz").read_bytes()
    file = folder / "dedicated_log_torch_trace_x.log"
    file.write_bytes(gzip.decompress(packed))
    return file


def test_each_process_is_shown(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert digest_log(log).pids == PIDS
    assert has_several(log)
    assert has_several(log.parent)
    assert traces(log) == traces(log.parent) == [Path(f"{log}@{pid}") for pid in PIDS]
    for path in (log, log.parent):
        several = processes_in(path)
        assert [process.name for process in several.processes] == [f"process {pid}" for pid in PIDS]
        assert not several.unread
        assert main(["explain", str(path)]) == 0
        out = capsys.readouterr().out
        assert out.startswith("3 processes compiled, 3 different results")


def test_each_has_its_own_compiles(log: Path) -> None:
    program, *children = (Recording.open(path) for path in traces(log))
    assert not program.losses.altered
    compiles = [start.compile_id for start in program.all(FrameStart)]
    assert set(compiles) == {"0/0", "0/1"}
    assert not program.all(GraphBreak)
    assert {recompile.compile_id for recompile in program.all(Recompile)} == {"0/1"}
    for child in children:
        ids = {start.compile_id for start in child.all(FrameStart)}
        assert "0/0" not in ids, "its parent compiled that"
        assert {"0/1", "1/0"} <= ids
        (graph_break,) = child.all(GraphBreak)
        assert graph_break.location.file == "/tmp/train/f.py"
        assert graph_break.location.line == 13
        (again,) = child.all(Recompile)
        assert (again.compile_id, again.function) == ("0/1", "f")
        assert again.failed[0].entry == "0/0"
        assert again.location is not None
        assert again.location.file == "/tmp/train/f.py", "a name that its parent had told"
        assert {guards.compile_id for guards in child.all(Guards)} <= ids
    starts = {one.start.pid for one in (program, *children) if one.start is not None}
    assert starts == set(PIDS)


def test_one_process_can_be_named(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", f"{log}@{PIDS[1]}"]) == 0
    assert "1 break" in capsys.readouterr().out
    assert main(["diff", str(log), str(log)]) == 2
    assert f"{log}@{PIDS[0]}" in capsys.readouterr().err
    assert main(["explain", f"{log.parent / 'y.log'}@7"]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("chunk", [1 << 20, 997])
def test_a_child_however_its_bytes_arrive(log: Path, chunk: int) -> None:
    data = log.read_bytes()
    decoder = LogDecoder(log.name, PIDS[2])
    records = [r for at in range(0, len(data), chunk) for r in decoder.feed(data[at : at + chunk])]
    records += decoder.finish()
    whole = Recording.open(Path(f"{log}@{PIDS[2]}"))
    assert records == whole.records


def test_a_process_that_is_not_in_the_log() -> None:
    decoder = LogDecoder("a.log", 8)
    assert decoder.feed(entry('"torch_version": {}', "{}").encode()) == []
    assert decoder.finish() == []
