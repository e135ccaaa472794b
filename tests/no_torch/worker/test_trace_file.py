"""Opening a trace: only a trace is written anew, and only by one recording at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tcw.compiler.trace.output_file import OutputRefused
from tcw.compiler.trace.reader import read_trace
from tcw.workbench.worker.trace_file import TraceFile
from tests.no_torch import traces


def opened(path: Path) -> TraceFile:
    return TraceFile(path, lambda record: None)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.tcw"
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in traces.clean()))
    return path


def test_a_trace_is_written_anew(trace: Path) -> None:
    file = opened(trace)
    file.emit(traces.end("ok"))
    file.close()
    assert len(trace.read_bytes().splitlines()) == 1


@pytest.mark.parametrize("how", ["text", "link", "fifo"])
def test_what_is_no_trace_is_not_emptied(how: str, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "other"
    if how == "text":
        path.write_text("import torch\n")
    elif how == "link":
        path.symlink_to(trace)
    else:
        os.mkfifo(path)
    before = trace.read_bytes()
    with pytest.raises(OutputRefused):
        opened(path)
    assert trace.read_bytes() == before
    assert how != "text" or path.read_text() == "import torch\n"


def test_what_took_its_place_since_it_was_looked_at_is_not_emptied(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor itself is looked at before the file is emptied."""
    from tcw.workbench.worker import trace_file

    model = tmp_path / "model.py"
    model.write_text("import torch\n")

    def swapped(*_: object) -> None:
        trace.unlink()
        os.link(model, trace)

    monkeypatch.setattr(trace_file, "check", swapped)
    with pytest.raises(OutputRefused, match="is not a trace"):
        opened(trace)
    assert model.read_text() == "import torch\n"


def test_a_second_recording_is_refused(trace: Path) -> None:
    first = opened(trace)
    first.emit(traces.end("ok"))
    with pytest.raises(OutputRefused, match=rf"another recording.*\(process {os.getpid()}\)"):
        opened(trace)
    assert len(read_trace(trace).records) == 1
    first.close()
    opened(trace).close()


HOLDS = """
import os, sys, time
from pathlib import Path
from tcw.workbench.worker.trace_file import TraceFile
file = TraceFile(Path(sys.argv[1]), lambda record: None)
os.set_inheritable(file.descriptor, True)
child = os.fork()
if not child:
    time.sleep(60)
if sys.argv[2] == "ends":
    file.close()
print(child, flush=True)
sys.stdin.readline()
os._exit(0)
"""


@pytest.mark.parametrize("ends", [True, False])
def test_a_worker_that_lives_on_keeps_the_trace_of_a_killed_recording(
    ends: bool, trace: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(trace), "ends" if ends else "dies"],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        try:
            process.kill()
            process.wait()
            if ends:  # a recording that ends by itself keeps nobody out, whoever has its descriptor
                opened(trace).close()
            else:
                with pytest.raises(OutputRefused, match="another recording"):
                    opened(trace)
        finally:
            os.kill(worker, 9)
    for _ in range(500):
        try:
            opened(trace).close()
        except OutputRefused:
            os.sched_yield()
        else:
            return
    raise AssertionError("the lock outlives all its processes")


def test_a_file_system_without_locks_is_used_without(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    opened(trace).close()
    assert trace.read_bytes() == b""


def test_a_trace_that_is_written_can_be_read(trace: Path) -> None:
    file = opened(trace)
    file.emit(traces.end("ok"))
    assert len(read_trace(trace).records) == 1
    file.close()
