"""Many logs that differ: which of them are decoded, and what is said of the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcw.compiler.trace.torch_logs.log_digests import digest_log, divergences
from tcw.workbench.cli.main import main
from tcw.workbench.request import folders
from tests.no_torch.torch_logs.samples import log


def write(folder: Path, number: int, *, at: int = -1) -> Path:
    """The log of a rank; `at`: the compile from which on it has other guards."""
    data = log("2.13")
    starts = [match.start() for match in re.finditer(rb'"dynamo_start"', data)]
    if at >= 0:
        place = starts[at - 1]
        other = rb'"guard_count": %d' % (1000 + number)
        data = data[:place] + re.sub(rb'"guard_count": \d+', other, data[place:])
    file = folder / f"dedicated_log_torch_trace_rank_{number}_x.log"
    file.write_bytes(data)
    return file


def test_the_usual_log_and_where_the_others_part(tmp_path: Path) -> None:
    late, early = write(tmp_path, 0, at=4), write(tmp_path, 1, at=1)
    usual, same = write(tmp_path, 2), write(tmp_path, 3)
    found = divergences({file: digest_log(file) for file in (late, early, usual, same)})
    wanted = [(usual, None), (early, 1), (late, 4), (same, None)]
    assert [(one.file, one.compile) for one in found] == wanted
    alone = divergences({early: digest_log(early)})
    assert [(one.file, one.compile) for one in alone] == [(early, None)]
    assert divergences({}) == []


def test_of_many_logs_that_differ_the_first_to_part_are_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "DECODED", 0)
    for number, at in enumerate((-1, 5, 4, 1, 3)):
        write(tmp_path, number, at=at)
    assert main(["explain", str(tmp_path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "5 processes compiled, 5 different results" in text
    assert re.search(r"rank 2 5 compiles, [^·]* · differs from rank 0 in compile 4", text)
    assert re.search(r"rank 4 5 compiles, [^·]* · differs from rank 0 in compile 3", text)
    assert "differs from rank 0 in compile 1" not in text, "the first to part is decoded"
    assert "3 logs of 3 further results, which differ only later, were only skimmed" in text
    assert main(["explain", str(tmp_path), "--markdown"]) == 0
    assert "were only skimmed" in " ".join(capsys.readouterr().out.split())
