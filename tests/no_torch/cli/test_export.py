"""`tcw export`: the file that it writes, and those that it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcw.viewers.markdown import MARKER
from tcw.workbench.cli.main import main
from tcw.workbench.request import codes
from tests.no_torch.tui.conftest import block_file

__all__ = ["block_file"]


def test_a_page_is_written_and_written_again(
    block_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "run.html"
    for _ in range(2):
        assert main(["export", str(block_file), "-o", str(page), "--most", "0.2"]) == codes.OK
    told = capsys.readouterr()
    assert told.out == ""
    assert "screens" in told.err
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_size < 1_000_000


def test_a_file_of_somebody_else_stays(block_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    page.write_text("<!doctype html><title>mine</title>")
    assert main(["export", str(block_file), "-o", str(page)]) == codes.USAGE
    assert "mine" in page.read_text()
    assert main(["export", str(block_file), "-o", str(block_file)]) == codes.USAGE
    assert block_file.read_bytes().startswith(b'{"record"')


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text("raise SystemExit\n")
    assert main(["export", str(model), "-o", str(tmp_path / "x.html")]) == codes.USAGE
    assert not (tmp_path / "x.html").exists()


def test_markdown_goes_to_stdout_or_to_a_file_of_ours(
    block_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(block_file), "--markdown", "--show", "guards"]) == codes.OK
    text = capsys.readouterr().out
    assert text.startswith(MARKER)
    assert "<summary>guards</summary>" in text
    note = tmp_path / "run.md"
    for _ in range(2):
        again = ["export", str(block_file), "--markdown", "--show", "guards", "-o", str(note)]
        assert main(again) == codes.OK
    assert note.read_text() == text
    note.write_text("# mine")
    assert main(again) == codes.USAGE
    assert note.read_text() == "# mine"


def test_options_that_contradict_each_other(
    block_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(block_file)]) == codes.USAGE
    assert main(["export", str(block_file), "--markdown", "--redact"]) == codes.USAGE
    assert main(["export", str(block_file), "-o", "x.html", "--show", "guards"]) == codes.USAGE
    assert capsys.readouterr().out == ""
    assert main(["diff", str(block_file), str(block_file), "--markdown", "--json"]) == codes.USAGE
