"""Traces and logs are read on any system; what records says in one line that it needs Linux."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tcw
from tcw.compiler.trace.records import Settings
from tcw.compiler.trace.torch_logs import log_digests
from tcw.workbench.cli.main import main
from tcw.workbench.request.codes import MACHINE
from tcw.workbench.tui.compile_again import cannot_run

ROOT = Path(__file__).parents[2]
LOGS = Path(__file__).parent / "torch_logs"
TRACE = Path(__file__).parent / "attention.jsonl"
NEEDED = "recording needs Linux, and this is darwin"
INSTEAD = "What was recorded on Linux can be read here: tcw open RUN.tcw"
RECORDS = (
    *("explain model.py", "profile model.py", "step model.py", "repro model.py", "check"),
    *("diff model.py --b=--train", "run model.py", "serve run.tcw", "doctor"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A trace, two logs and a model."""
    shutil.copy(TRACE, tmp_path / "run.tcw")
    (tmp_path / "logs").mkdir()
    for version in ("2.11", "2.13"):
        shutil.copy(LOGS / f"torch-{version}.log.gz", tmp_path / "logs")
    (tmp_path / "model.py").write_text("raise SystemExit('it ran')\n")
    return tmp_path


def elsewhere(folder: Path, *commands: str) -> tuple[list[str], list[str], list[int]]:
    """What each command writes to stdout and to stderr, and its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.no_torch.elsewhere", *commands],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out, err = (
        re.split(r"^exit code \d+\n", text, flags=re.MULTILINE)[:-1]
        for text in (done.stdout, done.stderr)
    )
    return (
        out,
        err,
        [int(code) for code in re.findall(r"^exit code (\d+)$", done.stdout, re.MULTILINE)],
    )


def test_what_reads_runs_on_any_system(folder: Path) -> None:
    old, new = (f"logs/torch-{version}.log.gz" for version in ("2.11", "2.13"))
    out, err, codes = elsewhere(
        folder,
        *(f"explain {new}", "explain logs", f"diff {old} {new}", "diff run.tcw run.tcw"),
        *("export run.tcw -o run.html --most 10", f"export {new} --markdown", f"screens {new}"),
    )
    assert codes == [0] * 7, err
    explained, several, difference, same, _, markdown, screens = out
    assert "a torch log" in explained
    assert "2 processes compiled" in several
    assert "2.11.0+cu130 → 2.13.0+cpu" in difference
    assert same == "Nothing changed: run.tcw → run.tcw\n"
    assert (folder / "run.html").stat().st_size > 10_000
    assert "recompiled" in markdown
    assert "kernels" in screens


def test_what_records_says_that_it_needs_linux(folder: Path) -> None:
    out, err, codes = elsewhere(folder, *RECORDS)
    assert out == [""] * len(RECORDS)
    assert err == [f"tcw: {NEEDED}. {INSTEAD}\n"] * len(RECORDS)
    assert codes == [MACHINE] * len(RECORDS)


@pytest.fixture
def on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")


@pytest.mark.usefixtures("on_macos")
def test_as_json_it_is_the_machine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json", str(folder / "model.py")]) == MACHINE
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], error["culprit"]) == ("NeedsLinux", "machine")
    assert error["message"].startswith(NEEDED)


@pytest.mark.usefixtures("on_macos")
def test_the_library_and_the_workbench_say_it_too(folder: Path) -> None:
    with pytest.raises(RuntimeError, match=NEEDED), tcw.record():
        pass
    assert cannot_run(Settings(file=str(folder / "model.py"))) == NEEDED


@pytest.mark.usefixtures("on_macos")
def test_large_logs_are_glanced_at_without_forks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted((folder / "logs").iterdir())
    expected = {file: log_digests.digest_log(file) for file in files}
    monkeypatch.setattr(log_digests, "LARGE", 0)
    monkeypatch.delattr(os, "fork")
    with log_digests.digest_logs(files) as looked_at:
        assert looked_at() == expected
