"""Progress on stderr: a line that changes on a terminal, silence for a short run elsewhere."""

from __future__ import annotations

import io
import os
import pty
import time

import pytest

from tcw.compiler.trace.records import Progress, StageStart
from tcw.workbench.cli import explain
from tcw.workbench.cli.explain import ProgressLine

DOING = Progress(stage="build", activity="building \x1b[31m12 kernels")


def read_until(terminal: int, words: str) -> str:
    """What a terminal gets until it has `words`; the test's timeout ends it otherwise."""
    got = ""
    while words not in got:
        got += os.read(terminal, 65536).decode()
    return got


def test_a_terminal_sees_the_stage() -> None:
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as stream, ProgressLine(stream, quiet=False) as line:
        line.see(DOING)
        got = read_until(master, "build")
    got += os.read(master, 65536).decode()
    os.close(master)
    assert "build  building ␛[31m12 kernels" in got
    assert "\x1b[31m" not in got
    assert got.endswith("\r\x1b[K")


def test_no_terminal_hears_of_slow_runs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with ProgressLine(stream, quiet=False) as line:
        line.see(DOING)
        time.sleep(2 * explain.TICK)
    assert stream.getvalue() == ""
    monkeypatch.setattr(explain, "PATIENCE", explain.TICK)
    with ProgressLine(stream, quiet=False) as line:
        line.see(DOING)
        while "build  building" not in stream.getvalue():
            time.sleep(explain.TICK)
    assert "\r" not in stream.getvalue()


def test_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "PATIENCE", 0.0)
    stream = io.StringIO()
    with ProgressLine(stream, quiet=True) as line:
        line.see(DOING)
        time.sleep(2 * explain.TICK)
    assert stream.getvalue() == ""


def test_a_graph_that_enters_a_stage_is_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "PATIENCE", 0.0)
    stream = io.StringIO()
    with ProgressLine(stream, quiet=False) as line:
        line.see(Progress(stage="capture", activity="call 1 of 4"))
        line.see(StageStart(stage="build", compile_id="0/0", graph="0/0/forward"))
        while "build  0/0/forward" not in stream.getvalue():
            time.sleep(explain.TICK)
