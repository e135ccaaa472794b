"""`tcw open`: what its options mean for a trace that is compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tcw.workbench.cli.main import main
from tcw.workbench.request import codes
from tcw.workbench.tui import app
from tcw.workbench.tui.compile_plan import Allowed
from tests.no_torch.cli.test_commands import ROOT
from tests.no_torch.tui.conftest import block_file

__all__ = ["block_file"]


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[Allowed]:
    """What was said of the traces that were opened; none is shown."""
    given: list[Allowed] = []

    def run(path: Path, *, allowed: Allowed, **_: object) -> int:
        given.append(allowed)
        return 0

    monkeypatch.setenv("TEXTUAL_DRIVER", "none")
    monkeypatch.setattr(app, "run", run)
    return given


def test_the_word_of_the_reader(words: list[Allowed], block_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text("model = 1\n")
    assert main(["open", str(block_file)]) == codes.OK
    given = ["--file", str(model), "--model", "Net(4)", "--yes"]
    assert main(["open", str(block_file), *given]) == codes.OK
    assert main(["open", str(block_file), "--view-only"]) == codes.OK
    assert words == [Allowed(), Allowed(model, "Net(4)", yes=True), Allowed(view_only=True)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--view-only", "--yes"], "--view-only never compiles"),
        (["--view-only", "--model", "x"], "--view-only never compiles"),
        (["--file", "gone.py"], "does not exist"),
        (["--file", "run.tcw"], "is never run"),
    ],
)
def test_what_cannot_be_meant(
    options: list[str],
    says: str,
    words: list[Allowed],
    block_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.tcw").write_text("model = 1\n")
    assert main(["open", str(block_file), *options]) == codes.USAGE
    assert says in capsys.readouterr().err
    assert words == []


def test_nothing_is_imported_from_the_folder_of_a_trace(block_file: Path, tmp_path: Path) -> None:
    """Neither by the command nor by what it imports."""
    trace = tmp_path / "mailed.tcw"
    trace.write_bytes(block_file.read_bytes())
    ran = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    names = ("click", "msgspec", "textual", "rich", "torch", "json", "conftest", "sitecustomize")
    for name in (*names, "compiler", "viewers", "workbench", "pygments", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(ran)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, str(ROOT / "tcw" / "__main__.py"), "open", trace.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        shown = b""
        while b"overview" not in shown:
            more = os.read(process.stdout.fileno(), 1 << 16)
            assert more, shown
            shown += more
        process.kill()
    assert not (tmp_path / "ran").exists()
