"""`tcw serve` on the command line: what it starts, and what it refuses to start."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tcw.workbench.cli import serve
from tcw.workbench.cli.main import main
from tcw.workbench.request import codes
from tests.no_torch.tui.conftest import block_file

pytest.importorskip("textual_serve")

__all__ = ["block_file"]


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of the servers that were started; none listens for long."""
    import tcw.workbench.web.server

    given: list[list[str]] = []

    class Pages:
        def __init__(self, words: list[str], *_: object) -> None:
            given.append(words)

        def run(self) -> None:
            pass

    monkeypatch.setattr(tcw.workbench.web.server, "Pages", Pages)
    return given


def test_a_trace_is_opened_and_a_model_stepped(
    words: list[list[str]], block_file: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.py"
    model.write_text("model = 1\n")
    assert main(["serve", str(block_file), "--port", "0", "--predict"]) == codes.OK
    options = ["--engine", "tcw", "--break", "first-rejection", "--", "--port", "9"]
    assert main(["serve", str(model), "--port", "0", *options]) == codes.OK
    assert main(["serve", str(block_file), "--port", "0", "--allow-run", "--yes"]) == codes.OK
    assert words == [
        ["open", str(block_file), "--view-only", "--predict"],
        ["step", str(model), *options],
        ["open", str(block_file), "--yes"],
    ]


def test_a_trace_runs_nothing_unless_it_is_allowed(
    words: list[list[str]], block_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["serve", str(block_file), "--port", "0", "--allow-run"]
    assert main(given) == codes.OK
    assert words == [["open", str(block_file)]]
    model = tmp_path / "model.py"
    model.write_text("model = 1\n")
    assert main(["serve", str(model), "--port", "0", "--allow-run"]) == codes.USAGE
    assert "--allow-run is for traces" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "", "example.org"])
def test_an_address_that_others_reach_is_refused(
    host: str, words: list[list[str]], block_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(block_file), "--port", "0", "--host", host]) == codes.USAGE
    assert "can run code as you" in capsys.readouterr().err
    assert words == []


def test_it_is_not_refused_where_it_is_meant(words: list[list[str]], block_file: Path) -> None:
    given = ["serve", str(block_file), "--port", "0", "--host", "0.0.0.0", "--allow-remote"]
    assert main(given) == codes.OK
    assert len(words) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nothing.tcw"], "does not exist"),
        (["--predict", "block.tcw"], "FILE comes first"),
        (["block.tcw", "--prdict"], "Did you mean '--predict'?"),
        (["model.py", "--break", "rejections"], "Did you mean 'rejection'?"),
        (["model.tcw"], "is not a tcw trace"),
    ],
)
def test_what_cannot_be_is_said_before_a_page_is_opened(
    options: list[str],
    said: str,
    words: list[list[str]],
    block_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.tcw").write_bytes(block_file.read_bytes())
    for name in ("model.py", "model.tcw"):
        (tmp_path / name).write_text("model = 1\n")
    assert main(["serve", *options, "--port", "0"]) == codes.USAGE
    assert said in capsys.readouterr().err
    assert words == []


def test_a_port_that_is_taken_is_said(
    words: list[list[str]], block_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(block_file), "--port", port]) == codes.USAGE
    assert "--port 0 picks a free one" in capsys.readouterr().err


def test_where_its_package_is_missing_the_command_is_said(
    block_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    assert main(["serve", str(block_file), "--port", "0"]) == codes.USAGE
    assert "pip install textual-serve" in capsys.readouterr().err
