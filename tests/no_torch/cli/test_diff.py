"""`tcw diff` of two traces, and what it refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import msgspec
import pytest

from tcw.compiler.trace.records import AnyRecord
from tcw.workbench.cli import page
from tcw.workbench.cli.main import main
from tcw.workbench.request import codes
from tests.block_trace import block_trace
from tests.conftest import GOLDENS, Golden
from tests.no_torch import schemas
from tests.no_torch.hostile import hostile
from tests.no_torch.two_runs import vetoed_run


def written(path: Path, records: list[AnyRecord]) -> str:
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return str(path)


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The block, and the block with a veto, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return (
        written(Path("before.tcw"), block_trace()),
        written(Path("after.tcw"), vetoed_run()),
    )


def test_a_trace_against_itself(
    traces: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", traces[0], traces[0]]) == codes.OK
    assert capsys.readouterr().out.startswith("Nothing changed: before.tcw → before.tcw\n")


def test_two_traces(
    traces: tuple[str, str], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert main(["diff", *traces]) == codes.OK
    golden("diff/veto.txt", capsys.readouterr().out)


def test_a_page(
    traces: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_SCREENS", 100)
    assert main(["diff", *traces, "-o", "diff.html"]) == codes.OK
    told = capsys.readouterr()
    assert told.out == (GOLDENS / "diff" / "veto.txt").read_text()
    assert "diff.html: " in told.err
    written = Path("diff.html").read_text()
    assert '"differences"' in written
    assert "<title>tcw: before.tcw → after.tcw</title>" in written
    assert main(["diff", *traces, "-o", traces[0]]) == codes.USAGE
    assert Path(traces[0]).read_bytes().startswith(b'{"record"')


def test_json(traces: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for second, same in ((traces[0], True), (traces[1], False)):
        assert main(["diff", traces[0], second, "--json"]) == codes.OK
        found = json.loads(capsys.readouterr().out)
        jsonschema.validate(found, schemas.DIFF)
        assert found["same"] is same
        assert bool(found["effects"]) is not same
        assert (found["before"], found["after"]) == ("before.tcw", second)


def test_times_of_recordings_made_elsewhere_are_never_compared(
    traces: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *traces, "--measure"]) == codes.USAGE
    assert "before.tcw is a trace: what it recorded is not run again" in capsys.readouterr().err


def test_markdown(traces: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *traces, "--markdown"]) == codes.OK
    assert capsys.readouterr().out == (GOLDENS / "markdown" / "diff.txt").read_text()


@pytest.mark.parametrize("how", ["added", "replaced"])
def test_hostile_text_is_shown_and_steers_nothing(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = written(tmp_path / "a.tcw", hostile(block_trace(), how))  # type: ignore[arg-type]
    other = written(tmp_path / "b.tcw", block_trace())
    for pair in ((one, other), (other, one)):
        for option in ([], ["--code"], ["--json"]):
            assert main(["diff", *pair, *option]) == codes.OK
            shown = capsys.readouterr().out
            assert all(line.isprintable() for line in shown.split("\n"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model.py"], "nothing to compare with: give B, --base REV, --a, --b, --python-a"),
        (["a.tcw", "b.tcw", "model.py"], "at most two to compare, got 3"),
        (["missing.py", "model.py"], "missing.py does not exist"),
        (["--base", "main", "model.py", "a.tcw"], "--base compares one file with itself"),
        (["a.tcw", "b.tcw", "--b", "--dynamic"], "is a trace: it is not recorded again"),
        (["model.py", "--b", "--bogus"], "No such option '--bogus'"),
        (["model.py", "--b", "'"], "No closing quotation"),
        (["a.tcw", "program.tcw"], "program.tcw"),
        (["--base", "nowhere", "model.py"], "no git revision 'nowhere'"),
        (["--base=--output=x", "model.py"], "no git revision '--output=x'"),
        (["HEAD..nowhere", "new.py"], "new.py does not exist at HEAD"),
        (["HEAD..nowhere", "model.py"], "no git revision 'nowhere'"),
        (["HEAD..HEAD"], "of which file? tcw diff HEAD..HEAD FILE"),
        (["--base", "HEAD", "HEAD..HEAD", "model.py"], "--base and HEAD..HEAD exclude each other"),
        (["../missing.py", "model.py"], "../missing.py does not exist"),
        (
            ["--base", "HEAD", "model.py", "--measure", "--until", "capture"],
            "--measure: model.py at HEAD is not called: --until capture stops before that",
        ),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    (tmp_path / "model.py").write_text("raise SystemExit('it ran')")
    (tmp_path / "program.tcw").write_text("raise SystemExit('it ran')")
    written(tmp_path / "a.tcw", block_trace())
    written(tmp_path / "b.tcw", block_trace())
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "model.py"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    (tmp_path / "new.py").write_text("")
    assert main(["diff", *arguments]) == codes.USAGE
    said = capsys.readouterr()
    assert words in said.err
    assert "it ran" not in said.err + said.out
