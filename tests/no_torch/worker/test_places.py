from __future__ import annotations

from pathlib import Path

import pytest

from tcw.compiler.trace.records import Location
from tcw.workbench.worker import blame
from tcw.workbench.worker.autopsy import Autopsy, Stopped

DUMP = """Fatal Python error: Segmentation fault

Thread 0x00007f1 (most recent call first):
  File "/home/me/other.py", line 3 in wait

Current thread 0x00007f2 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/home/me/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1 in _call
  File "/home/me/m\\xf6del.py", line 7 in forward
  File "/home/me/m\\xf6del.py", line 9 in <module>

Extension modules: torch._C (total: 1)
"""

DUMP_OF_3_14 = DUMP.replace("2 (most", "2 [python3.14] (most").replace(
    "Extension",
    """Current thread's C stack trace (most recent call first):
  Binary file "/usr/bin/python3.14", at _Py_DumpStack+0x4a [0x499c1d]
  Binary file "/usr/bin/python3.14" [0x53bf79]

Extension""",
)


@pytest.mark.parametrize("dump", [DUMP, DUMP_OF_3_14])
def test_the_current_thread_of_a_dump(dump: str) -> None:
    frames = blame.dumped_frames(dump)
    assert [frame.line for frame in frames] == [9, 7, 1, 519]
    assert frames[0] == Location(file="/home/me/mödel.py", line=9, function="<module>")
    assert blame.deepest(frames, "/home/me") == Location(
        file="/home/me/mödel.py", line=7, function="forward"
    )


def test_the_users_own_files_come_before_a_library() -> None:
    frames = [
        Location(file="/home/me/model.py", line=1),
        Location(file="/home/me/venv/lib/python3.11/site-packages/library/a.py", line=2),
        Location(file="/home/me/venv/lib/python3.11/site-packages/torch/a.py", line=3),
    ]
    assert blame.deepest(frames, "/home/me") == frames[0]
    assert blame.deepest(frames[1:], "/home/me") == frames[1]
    assert blame.deepest(frames[2:], "/home/me") is None
    assert blame.deepest(frames, "/home/m") == frames[1]


def test_columns_of_a_traceback() -> None:
    def fails() -> None:
        raise ValueError(len("é")) if True else None

    try:
        fails()
    except ValueError as error:
        frames = blame.traceback_frames(error.__traceback__)
    assert frames[-1].function == "fails"
    line = blame.source_line(frames[-1]).encode()
    assert line[frames[-1].column : frames[-1].end_column].startswith(b"raise ValueError")


def test_a_line_that_cannot_be_read(tmp_path: Path) -> None:
    assert blame.source_line(Location(file=str(tmp_path / "no.py"), line=1)) == ""
    assert blame.source_line(Location(file=str(tmp_path), line=1)) == ""
    assert blame.source_line(None) == ""


def test_deaths() -> None:
    from tcw.compiler.trace.records import End, Failure, Output, Progress, Settings, Start

    def told(
        status: str, stopped: Stopped | None = None, *, failed: bool = False, said: str = ""
    ) -> list[object]:
        autopsy = Autopsy(Settings(file="/home/me/model.py", timeout=5.0))
        autopsy.see(
            Start(
                schema_version=1,
                tool_version="",
                settings=Settings(file=""),
                python="",
                platform="",
                pid=1,
                time=0.0,
            )
        )
        autopsy.see(Progress(stage="load", activity="loading model.py"))
        if failed:
            autopsy.see(Failure(doing="", type="", message=""))
        autopsy.see(Output(stream="stderr", text=said))
        failures, end = autopsy.found(status, DUMP, stopped, 1.0)
        return [*failures, end]

    failure, end = told("11")
    assert isinstance(failure, Failure)
    assert isinstance(end, End)
    assert (failure.type, failure.doing) == ("SIGSEGV", "loading model.py")
    assert failure.location is not None
    assert failure.location.line == 7
    assert (end.status, end.signal, end.exit_code) == ("crashed", 11, None)
    assert end.reason == "SIGSEGV while loading model.py"
    (end,) = told(str(3 << 8), failed=True)
    assert isinstance(end, End)
    assert (end.status, end.exit_code) == ("exited", 3)
    failure, end = told("9", "timeout")
    assert isinstance(failure, Failure)
    assert failure.message == "not done after 5 s"
    (end,) = told("9", "interrupted")
    assert isinstance(end, End)
    assert end.status == "interrupted"
    failure, end = told("")
    assert isinstance(end, End)
    assert end.status == "crashed"
    linker = "cannot allocate memory for thread-local data: ABORT"
    for code, culprit, evidence in ((127, "machine", linker), (1, "user", "")):
        failure, end = told(str(code << 8), said=f"a line\n{linker}\n")
        assert isinstance(failure, Failure)
        assert (failure.culprit, failure.evidence) == (culprit, evidence)
