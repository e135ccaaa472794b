"""kill -9 of the worker, of its guardian and of the front end, at random moments.

Every trace opens, at most one record is lost, it is marked incomplete, and no process and no folder
is left. The same of SIGTERM and SIGHUP, and of a recording that is driven.
The whole of it: `pytest -m long tests/cpu/worker/test_kill.py` (50 moments each, some minutes).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import random
import signal
import subprocess
import sys
import termios
import threading
import time
import uuid
from pathlib import Path

import pytest

from tcw.compiler.trace.reader import Trace, read_trace
from tcw.compiler.trace.records import AnyRecord, End, Failure, Run, Settings, Start
from tcw.workbench import DOOR
from tcw.workbench.worker import child
from tcw.workbench.worker.client import record
from tcw.workbench.worker.guardian import CACHES_PREFIX, remove_caches, sweep
from tests.cpu.worker.recorded import MARK, left_behind, parent_of

pytestmark = pytest.mark.cold_start
"""Some of the moments are in the imports of a new process."""
ROOT = Path(__file__).parents[3]

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
from tcw.compiler.trace.records import Settings
from tcw.workbench.worker.client import record
record(
    Settings(file=sys.argv[1], until="capture"), trace=Path(sys.argv[2]), on_record=lambda _: None
)
"""
DRIVEN = """
import sys, threading
from pathlib import Path
from tcw.compiler.protocol.commands import Go
from tcw.compiler.trace.records import Settings, Waiting
from tcw.workbench.worker.client import Driver
def see(one):
    if isinstance(one, Waiting):
        threading.Thread(target=lambda: driver.send(Go(mode="continue"))).start()
driver = Driver(Settings(file=sys.argv[1], until="capture"), Path(sys.argv[2]), see)
driver.join()
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
    records: list[AnyRecord] = []
    started = threading.Event()

    def see(one: AnyRecord) -> None:
        records.append(one)
        started.set()

    def kill() -> None:
        if not started.wait(240):
            return
        time.sleep(moment)
        worker = next(one.pid for one in records if isinstance(one, Start))
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


def kill_front_end_at(
    file: Path, moment: float, number: int = signal.SIGKILL, program: str = FRONT_END
) -> Trace:
    """Send the front end a signal some seconds after its trace has begun; what it left."""
    mark = uuid.uuid4().hex
    trace = file.with_suffix(".tcw")
    trace.unlink(missing_ok=True)
    temporary = file.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    command = [sys.executable, "-c", program, str(file), str(trace)]
    if not program:
        command = [sys.executable, DOOR, "explain", str(file)]
        command += ["--until", "capture", "--trace", str(trace), "--quiet"]
    process = subprocess.Popen(
        command,
        env={
            **os.environ,
            MARK: mark,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TMPDIR": str(temporary),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: trace.exists() and trace.stat().st_size > 0)
    time.sleep(moment)
    process.send_signal(number)
    code = process.wait()
    assert_gone(mark)
    wait_for(lambda: not list(temporary.glob("tcw-*")), 10)
    assert list(temporary.glob("tcw-*")) == []
    read = read_trace(trace)
    if not read.complete:
        assert not any(isinstance(one, End) for one in read.records)
    assert_whole(read)
    if number != signal.SIGKILL:
        assert code in (0, 130)  # 130 with "ok": it came between the trace's end and the report
        end = read.records[-1]
        assert isinstance(end, End)
        assert end.status == "ok" or (code and end.status == "interrupted")
    return read


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


@pytest.mark.usefixtures("hangups")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ended_as_by_ctrl_c(file: Path, number: int) -> None:
    for moment in moments(1, seed=6 + number):
        kill_front_end_at(file, moment, number, program="")


@pytest.mark.parametrize("moment", moments(2, seed=7))
def test_front_end_of_a_driven_recording_killed(file: Path, moment: float) -> None:
    read = kill_front_end_at(file, moment, program=DRIVEN)
    assert any(isinstance(one, Run) for one in read.records)


@pytest.mark.usefixtures("hangups")
@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_workbench_ended_as_by_ctrl_c(file: Path, number: int) -> None:
    """On a terminal, which it leaves as it found it."""
    mark, trace = uuid.uuid4().hex, file.with_suffix(".tcw")
    temporary = file.parent / "tmp"
    temporary.mkdir()
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [sys.executable, DOOR, "step", str(file), "--trace", str(trace)],
        env={**os.environ, MARK: mark, "TERM": "xterm", "TMPDIR": str(temporary)},
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    reader = threading.Thread(target=drained, args=(ours,), daemon=True)
    reader.start()
    try:
        wait_for(lambda: trace.exists() and b'"waiting"' in trace.read_bytes())
        process.send_signal(number)
        code = process.wait(60)
    finally:
        process.kill()
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    reader.join(10)
    os.close(ours)
    assert code == 130
    assert_gone(mark)
    assert list(temporary.glob("tcw-*")) == []
    end = read_trace(trace).records[-1]
    assert isinstance(end, End)
    assert end.status in ("ok", "interrupted")


def test_the_workbench_ends_with_its_terminal_where_a_hangup_is_ignored(file: Path) -> None:
    """As under nohup: nothing tells it but the terminal."""
    mark = uuid.uuid4().hex
    trace = file.with_suffix(".tcw")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, DOOR, "step", str(file), "--trace", str(trace)],
        env={**os.environ, MARK: mark, "TERM": "xterm"},
        stdin=theirs, stdout=theirs, stderr=theirs,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    os.close(theirs)
    reader = threading.Thread(target=drained, args=(ours,), daemon=True)
    reader.start()
    try:
        wait_for(lambda: trace.exists() and b'"waiting"' in trace.read_bytes())
        hang_up(ours)
        assert process.wait(60) == 130
    finally:
        process.kill()
    assert_gone(mark)


def hang_up(descriptor: int) -> None:
    """Close our end of a terminal, although a thread reads from it."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, descriptor)
    os.close(null)


def drained(descriptor: int) -> None:
    """Read until the other side is closed: a terminal that nobody reads fills up."""
    with contextlib.suppress(OSError):
        while os.read(descriptor, 65536):
            pass


def test_nohup_stays_in_force() -> None:
    program = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from tcw.workbench.cli import end_like_ctrl_c; end_like_ctrl_c()\n"
        "assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN\n"
        "assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def made(folder: Path, age: float) -> Path:
    """A folder of caches as a recording makes it."""
    caches = folder / f"{CACHES_PREFIX}{uuid.uuid4().hex}"
    caches.mkdir(mode=0o700)
    (caches / "kernel.so").write_bytes(b"1")
    os.utime(caches, (time.time() - age, time.time() - age))
    return caches


def test_a_guardian_sweeps_what_killed_ones_left(tmp_path: Path) -> None:
    """Old folders of ours without a lock, and nothing else."""
    stale, fresh, locked = made(tmp_path, 600), made(tmp_path, 0), made(tmp_path, 600)
    other = tmp_path / "tcw-of-somebody"
    other.mkdir()
    target = made(tmp_path / "..", 600)
    link = tmp_path / f"{CACHES_PREFIX}{uuid.uuid4().hex}"
    link.symlink_to(target)
    descriptor = os.open(locked, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        sweep(str(tmp_path))
    finally:
        os.close(descriptor)
    assert not stale.exists()
    assert fresh.exists()
    assert locked.exists()
    assert other.exists()
    assert link.is_symlink()
    assert (target / "kernel.so").exists()
    remove_caches(str(other))
    remove_caches(str(link))
    assert other.exists()
    assert (target / "kernel.so").exists()


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("hangups")
def test_driven_and_signalled_at_thirty_five_moments(file: Path) -> None:
    for moment in moments(35, seed=8):
        kill_front_end_at(file, moment, program=DRIVEN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        for moment in moments(35, seed=9):
            kill_front_end_at(file, moment, number, program="")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_fifty_moments(file: Path) -> None:
    for moment in moments(50, seed=4):
        kill_worker_at(file, moment)
    for moment in moments(50, seed=5):
        kill_front_end_at(file, moment)
