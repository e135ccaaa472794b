"""The trial of the guardian that `tcw doctor` makes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from tcw.workbench.worker import guarded


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(guarded, "END_SECONDS", 0.5)
    return folder


def worker(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program in place of the guarded worker."""
    monkeypatch.setattr(guarded, "command", lambda *_: [sys.executable, "-c", body])


def test_here_it_works(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "END_SECONDS", 20.0)
    assert guarded.guardian_fault() == ""
    assert list(temporary.iterdir()) == []


def test_one_that_does_not_start(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker("import sys; sys.exit(3)", monkeypatch)
    assert guarded.guardian_fault() == "it does not start: exit code 3"
    monkeypatch.setattr(guarded, "command", lambda *_: [str(temporary / "no-program")])
    assert guarded.guardian_fault() == "it does not start: No such file or directory"
    assert list(temporary.iterdir()) == []


def test_one_that_leaves_a_process(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = "import time; os.fork() or time.sleep(2)"
    worker(f"import os; os.write(1, b'waiting\\n'); {child}", monkeypatch)
    assert guarded.guardian_fault() == "a process with a session of its own survives it"
    assert list(temporary.iterdir()) == []


def test_one_that_leaves_the_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker("import os; os.write(1, b'waiting\\n')", monkeypatch)
    assert guarded.guardian_fault().startswith(f"it leaves {temporary}/tcw-recording-")
    assert list(temporary.iterdir()) == []


def test_one_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    worker("import os, time; os.write(1, b'waiting\\n'); time.sleep(60)", monkeypatch)
    assert guarded.guardian_fault() == "it does not end"


def test_without_a_temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert guarded.guardian_fault() == f"no folder in {tmp_path}/nowhere: No such file or directory"
