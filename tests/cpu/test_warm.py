"""A forked worker is what a new process would be, and a server that died keeps no test waiting."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tcw.compiler.trace.records import AnyRecord, Failure, Output, Settings
from tcw.workbench.worker import child
from tcw.workbench.worker.child import start_process
from tcw.workbench.worker.client import record
from tests.cpu.warm import Forked, ServerDied, WarmStart
from tests.cpu.worker.recorded import MARK, parent_of

ROOT = Path(__file__).parents[2]

LEAST = "example_inputs = (1,)\ndef model(x): return x\n"
STARTED_BY = LEAST + (
    "import os\nprint(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])\n"
)
"""Prints who started the recording's processes: a server, or this process."""
WAITS = "import time; time.sleep(1000)"
INHERITED = """
import ctypes, importlib, json, locale, os, random, sys, tempfile, threading
import __main__, numpy

def links(folder):
    found = {}
    for name in os.listdir(folder):
        try:
            found[name] = os.readlink(os.path.join(folder, name)).partition(":")[0]
        except OSError:
            pass
    return found

def finders():
    return [str(finder).partition(" at ")[0] for finder in sys.meta_path]

get = ctypes.CDLL(None).getenv
get.restype = ctypes.c_char_p
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
shown = open("/proc/self/environ").read().split("\\0")
guardian = os.getppid()
print(json.dumps({
    "environ": dict(os.environ),
    "getenv": {name: (get(name.encode()) or b"").decode() for name in os.environ},
    "shown": {name: f"{name}={os.environ[name]}" in shown for name in os.environ},
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": list(sys.flags),
    "warnoptions": sys.warnoptions, "xoptions": sys._xoptions, "meta_path": finders(),
    "main": [__main__.__name__, sorted(vars(__main__))],
    "folder": os.getcwd(), "tmp": tempfile.gettempdir(),
    "umask": status["Umask"], "ignored": status["SigIgn"], "caught": status["SigCgt"],
    "blocked": status["SigBlk"], "processors": status["Cpus_allowed"],
    "limits": open("/proc/self/limits").read(),
    "leads": [os.getsid(0) == os.getpid() == os.getpgid(0), os.getsid(guardian) == guardian],
    "files": sorted(links("/proc/self/fd").values()), "input": links("/proc/self/fd")["0"],
    "streams": [[s.encoding, s.errors, s.line_buffering] for s in (sys.stdout, sys.stderr)],
    "locale": locale.setlocale(locale.LC_ALL), "exe": os.readlink("/proc/self/exe"),
    "threads": [thread.name for thread in threading.enumerate()],
    "main thread": threading.current_thread() is threading.main_thread(),
    "compiler": importlib.import_module("torch._inductor.config").cpp.cxx,
    "torch threads": sys.modules["torch"].get_num_threads(),
    "seeds": [sys.modules["torch"].initial_seed(), random.random(), numpy.random.random()],
}))
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmStart]:
    """With servers of its own, in place of the run's: each takes seconds to import torch."""
    folder = tmp_path_factory.mktemp("servers")
    made = WarmStart(start_process, always_cold=lambda: False, folder=folder)
    yield made
    made.close(seconds=10.0)


@pytest.fixture
def warm(own: WarmStart, monkeypatch: pytest.MonkeyPatch) -> WarmStart:
    monkeypatch.setattr(child, "start_process", own.start)
    return own


def printed(folder: Path, text: str) -> str:
    """What a file prints as it is loaded in a worker."""
    file = folder / "model.py"
    file.write_text(text)
    records: list[AnyRecord] = []
    record(
        Settings(file=str(file), until="load", timeout=480.0), trace=None, on_record=records.append
    )
    assert not [one for one in records if isinstance(one, Failure)]
    return "".join(one.text for one in records if isinstance(one, Output))


def test_a_fork_is_what_a_new_process_would_be(
    warm_start: WarmStart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, "first")
    monkeypatch.setattr(child, "start_process", warm_start.start)
    printed(tmp_path, LEAST)  # the server is older than the rest of this test
    monkeypatch.setenv(MARK, "another")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("CXX", "another")
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o027)
    found = []
    try:
        for start in (warm_start.start, warm_start.start, start_process):
            monkeypatch.setattr(child, "start_process", start)
            # numbers of descriptors, and the names of the recording's folder
            text = re.sub(
                r"tcw-recording-\w+", "tcw-recording", printed(tmp_path, LEAST + INHERITED)
            )
            found.append(json.loads(text.replace(_recording(text), "recording")))
    finally:
        os.umask(before)
    seeds = [one.pop("seeds") for one in found]
    assert all(len(set(drawn)) == len(found) for drawn in zip(*seeds, strict=True))
    forked, again, new = found
    for one in found:
        one["orig_argv"][-6:] = ["a number"] * 6
    assert forked == again == new
    assert forked["environ"] == forked["getenv"]
    assert forked["shown"][MARK]
    assert all(forked["shown"].values())
    assert forked["umask"].split() == ["0027"]


def _recording(text: str) -> str:
    return str(json.loads(text)["environ"]["TCW_RECORDING"])


@pytest.mark.long
def test_what_the_server_has_read_is_not_read_again(
    warm: WarmStart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert int(printed(tmp_path, STARTED_BY)) != os.getpid()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert int(printed(tmp_path, STARTED_BY)) == os.getpid()
    monkeypatch.undo()
    monkeypatch.setattr(child, "start_process", warm.start)
    assert int(printed(tmp_path, STARTED_BY)) != os.getpid()


@pytest.mark.long
def test_a_fork_ignores_the_signals_that_this_process_does_now(
    warm: WarmStart, tmp_path: Path
) -> None:
    text = STARTED_BY + "import signal; print(signal.getsignal(signal.SIGUSR2).name)"
    first, before = printed(tmp_path, text).split()
    handler = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        second, during = printed(tmp_path, text).split()
    finally:
        signal.signal(signal.SIGUSR2, handler)
    third, after = printed(tmp_path, text).split()
    assert [before, during, after] == ["SIG_DFL", "SIG_IGN", "SIG_DFL"]
    assert first == third != second, "one server for each set of ignored signals"
    assert str(os.getpid()) not in (first, second), "all of them are forks"


def test_how_a_fork_ends_is_told(warm_start: WarmStart, tmp_path: Path) -> None:
    for text, status in (
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ):
        process = started(warm_start, tmp_path, text)
        assert process.wait(240) == process.returncode == process.poll() == status
    process = started(
        warm_start, tmp_path, "import time; print('here', flush=True); time.sleep(1000)"
    )
    assert process.stdout.readline() == b"here\n"
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.wait(240) == -signal.SIGKILL
    process.kill()  # of one that is gone, as of a `Popen`


def test_a_server_is_shared_until_the_last_has_left(warm_start: WarmStart, tmp_path: Path) -> None:
    other = WarmStart(start_process, lambda: False, warm_start._folder)
    fork = started(warm_start, tmp_path, WAITS)
    another = started(other, tmp_path, WAITS)
    assert parent_of(fork.pid) == parent_of(another.pid) != os.getpid()
    another.kill()
    assert another.wait(240) == -signal.SIGKILL
    other.close(seconds=0.0)
    again = started(warm_start, tmp_path, WAITS)
    assert parent_of(fork.pid) == parent_of(again.pid)
    for one in (fork, again):
        one.kill()
        assert one.wait(240) == -signal.SIGKILL


def started(warm: WarmStart, folder: Path, text: str) -> Any:
    """A fork that runs another program than the door."""
    file = folder / "program.py"
    file.write_text(text)
    process = warm.start([sys.executable, "-P", str(file)], dict(os.environ), [])
    assert isinstance(process, Forked)
    return process


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_server_that_died_is_an_error_and_no_hang(warm: WarmStart, tmp_path: Path) -> None:
    process = started(warm, tmp_path, WAITS)
    os.kill(parent_of(process.pid), signal.SIGKILL)
    with pytest.raises(ServerDied, match="while a worker ran"):
        process.wait(240)
    os.kill(process.pid, signal.SIGKILL)
    assert "here" in printed(tmp_path, LEAST + "print('here')"), "there is a new one"


def test_nothing_is_left_of_a_server_whose_front_end_was_killed(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    program = (
        "import os, signal, sys\n"
        "from tests.cpu.warm import WarmStart\n"
        "from pathlib import Path\n"
        "from tcw.workbench.worker.child import start_process\n"
        "folder = Path(sys.argv[1]).parent\n"
        "warm = WarmStart(start_process, always_cold=lambda: False, folder=folder)\n"
        "process = warm.start([sys.executable, '-P', sys.argv[1]], dict(os.environ), [])\n"
        "process.wait()\n"
        "print(process.returncode, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    file = tmp_path / "model.py"
    file.write_text("raise SystemExit(5)")
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        cwd=ROOT,
        env={**os.environ, "A_MARK": mark},
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"5\n", done.stderr
    deadline = time.monotonic() + 60
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marked(mark) == []


def marked(mark: str) -> list[str]:
    """Living processes that were started with this text in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "environ").read_bytes():
                found.append(process.name)
    return found
