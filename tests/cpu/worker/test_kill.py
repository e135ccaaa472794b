"""kill -9 of the worker, of its guardian and of the front end, at random moments.

Every trace opens, at most one record is lost, it is marked incomplete, and no process is left.
The whole of it: `pytest -m long tests/cpu/worker/test_kill.py` (50 moments each, some minutes).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

from compiler.trace.reader import Trace, read_trace
from compiler.trace.records import AnyRecord, End, Failure, Settings, Start
from tests.cpu.worker.recorded import MARK, left_behind
from workbench.worker import child
from workbench.worker.client import record

MODEL = """
import subprocess, sys, torch
print("x" * 1000)
subprocess.Popen(["sleep", "1000"], start_new_session=True)

def model(x):
    print("y" * 1000)
    return torch.sin(x)

example_inputs = [(torch.ones(2 + n % 3),) for n in range(3000)]
"""
FRONT_END = """
import sys
from pathlib import Path
from compiler.trace.records import Settings
from workbench.worker.client import record
record(
    Settings(file=sys.argv[1], until="capture"), trace=Path(sys.argv[2]), on_record=lambda _: None
)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    return file


def moments(count: int, seed: int) -> list[float]:
    """Seconds after the start; half of them early, where the processes come to be."""
    draw = random.Random(seed)
    return [draw.uniform(0, 0.5 if n % 2 else 8) for n in range(count)]


def kill_worker_at(file: Path, moment: float, *, guardian: bool = False) -> None:
    """Kill while a recording runs in this process."""
    mark = uuid.uuid4().hex
    os.environ[MARK] = mark
    trace = file.with_suffix(".tcw")
    found: list[AnyRecord] = []
    started = threading.Event()

    def see(one: AnyRecord) -> None:
        found.append(one)
        started.set()

    def kill() -> None:
        if not started.wait(240):
            return
        time.sleep(moment)
        worker = next(one.pid for one in found if isinstance(one, Start))
        try:
            os.kill(parent_of(worker) if guardian else worker, signal.SIGKILL)
        except OSError:
            return  # it was done before

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        end = record(Settings(file=str(file), until="capture"), trace=trace, on_record=see)
    finally:
        del os.environ[MARK]
        thread.join()
    assert_gone(mark)
    read = read_trace(trace)
    assert read.records[-1] == end
    assert read.losses.total <= 1
    if end.status != "ok":
        assert end.status == "crashed"
        assert any(isinstance(one, Failure) for one in read.records)
    assert_whole(read)


def kill_front_end_at(file: Path, moment: float) -> None:
    mark = uuid.uuid4().hex
    trace = file.with_suffix(".tcw")
    trace.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", FRONT_END, str(file), str(trace)],
        env={
            **os.environ,
            MARK: mark,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TMPDIR": str(file.parent),  # nobody is left to empty its caches
        },
    )
    wait_for(lambda: trace.exists() and trace.stat().st_size > 0)
    time.sleep(moment)
    process.kill()
    process.wait()
    assert_gone(mark)
    read = read_trace(trace)
    if not read.complete:
        assert not any(isinstance(one, End) for one in read.records)
    assert_whole(read)


def assert_whole(read: Trace) -> None:
    assert read.losses.damaged + read.losses.partial <= 1
    assert isinstance(read.records[0], Start)


def assert_gone(mark: str) -> None:
    wait_for(lambda: not left_behind(mark))
    assert left_behind(mark) == []


def wait_for(condition, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def parent_of(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[1])


@pytest.mark.parametrize("moment", moments(2, seed=1))
def test_worker_killed(file: Path, moment: float) -> None:
    kill_worker_at(file, moment)


@pytest.mark.parametrize("moment", moments(2, seed=2))
def test_guardian_killed(file: Path, moment: float) -> None:
    kill_worker_at(file, moment, guardian=True)


def guardian_killed_beside(tmp_path: Path, started: str) -> End:
    """How a recording ends whose file starts a process in a session of its own, and then kills
    the guardian."""
    file = tmp_path / "model.py"
    file.write_text(
        "import os, signal, subprocess, time\n"
        f"one = subprocess.Popen({started}, start_new_session=True)\n"
        f"open({str(tmp_path / 'started')!r}, 'w').write(str(one.pid))\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n"
        "time.sleep(1000)\n"
    )
    return record(Settings(file=str(file), until="capture"), trace=None, on_record=print)


def test_guardian_killed_beside_a_process_of_the_users(tmp_path: Path) -> None:
    """It holds the worker's output open, and would be waited for."""
    os.environ[MARK] = mark = uuid.uuid4().hex
    try:
        end = guardian_killed_beside(tmp_path, "['sleep', '1000']")
    finally:
        del os.environ[MARK]
    assert end.status == "crashed"
    assert_gone(mark)


@pytest.mark.timeout(120)
def test_guardian_killed_beside_a_process_that_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment does not name the recording, but it holds the output open."""
    monkeypatch.setattr(child, "_DRAIN_SECONDS", 1.0)
    try:
        end = guardian_killed_beside(tmp_path, "['sleep', '1000'], env={}")
    finally:
        os.kill(int((tmp_path / "started").read_text()), signal.SIGKILL)
    assert end.status == "crashed"


@pytest.mark.parametrize("moment", moments(3, seed=3))
def test_front_end_killed(file: Path, moment: float) -> None:
    kill_front_end_at(file, moment)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_fifty_moments(file: Path) -> None:
    for moment in moments(50, seed=4):
        kill_worker_at(file, moment)
    for moment in moments(50, seed=5):
        kill_front_end_at(file, moment)
