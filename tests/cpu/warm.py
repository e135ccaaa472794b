"""Workers that have torch imported when they start: forks of a server, in place of new processes.

Importing torch and ours takes a worker three seconds of a processor, and a server five: all
processes of pytest-xdist share one. `WarmStart.start` stands in for
`tcw.workbench.worker.child.start_process`. It starts a new process all the same where a worker
would inherit what the server has already read: an environment variable, a limit.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from tests.cpu.warm_server import ROOM

SERVER = Path(__file__).with_name("warm_server.py")
SECONDS = 240.0
"""How long a busy machine may take to import torch."""
READ_LATE = (
    *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR"),
    *("TCW_CACHE_DIR", "TCW_CACHE_BYTES", "TCW_RECORDING", "TCW_TEST_MARK", "TCW_STRICT"),
    *("PYTEST_CURRENT_TEST", "NO_COLOR", "COLUMNS"),
    "CXX",  # a worker with another one forgets what Inductor knows of the server's
    "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",  # a process that loads C++ of Inductor's sets it
    *("COMPILER_PATH", "PYTEST_XDIST_WORKER"),  # each process of pytest-xdist has another
)
"""Environment variables that torch and ours read when they use them, and not when they are
imported. A worker with any other that the server has not is a new process."""

RESTORED = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
"""Signals that Python ignores, and that `subprocess.Popen` restores in what it starts."""

log = logging.getLogger(__name__)

Start = Callable[[list[str], dict[str, str], list[int]], Any]


class ServerDied(Exception):
    """The fork server is gone, or does not answer."""


class Forked:
    """A process that the server has forked, with what `Child` uses of `subprocess.Popen`."""

    def __init__(
        self, pid: int, report: int, stdout: IO[bytes], stderr: IO[bytes], server: Server
    ) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._report = report
        """Its wait status comes here from the server, its parent."""
        self._server = server

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            ready, _, _ = select.select([self._report], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
            status = os.read(self._report, 64)
            os.close(self._report)
            if not status:
                self.returncode = -signal.SIGKILL
                raise self._server.died("while a worker ran")
            self.returncode = os.waitstatus_to_exitcode(int(status))
        return self.returncode

    def communicate(self) -> tuple[bytes, bytes]:
        """All that it prints."""
        with ThreadPoolExecutor(1) as other, self.stdout, self.stderr:
            errors = other.submit(self.stderr.read)
            return self.stdout.read(), errors.result()

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Server:
    """A fork server, shared by all who know its folder and name. It ends with the last of them."""

    def __init__(self, folder: Path, name: str, environment: Mapping[str, str]) -> None:
        self._text = ""
        self._process: subprocess.Popen[bytes] | None = None
        """Only where it was started from here."""
        self._connection = socket.socket(socket.AF_UNIX)
        lock = folder / f"{name}.lock"
        said = folder / f"{name}.said"
        # a path of any length: that of a socket has a hundred characters at most
        there = os.open(folder, os.O_DIRECTORY)
        address = f"/proc/self/fd/{there}/{name}"
        try:
            with open(lock, "wb") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                if not said.exists():
                    os.mkfifo(said, 0o600)
                self._said = io.FileIO(os.open(said, os.O_RDWR | os.O_NONBLOCK))
                """A pipe, which keeps what the server has said while anybody has it open."""
                try:
                    self._connection.connect(address)
                except (FileNotFoundError, ConnectionRefusedError):
                    Path(address).unlink(missing_ok=True)
                    with socket.socket(socket.AF_UNIX) as listener:
                        listener.bind(address)
                        listener.listen()
                        self._process = start(listener, lock, said, environment)
                    self._connection.connect(address)
        finally:
            os.close(there)

    def fork(self, request: dict[str, Any], inherited: list[int]) -> Forked:
        """Raises `OSError` where the machine cannot fork, `ServerDied`."""
        report, theirs = os.pipe()
        out, write_out = os.pipe()
        err, write_err = os.pipe()
        given = [theirs, write_out, write_err]
        data = json.dumps(request | {"numbers": [1, 2, *inherited]}).encode()
        try:
            socket.send_fds(self._connection, [len(data).to_bytes(4, "big")], [*given, *inherited])
            self._connection.sendall(data)
        except OSError as error:
            raise self.died("before a worker") from error
        finally:
            for number in given:
                os.close(number)
        pid = self._line(report)
        if not pid.isdigit():
            raise OSError(pid)
        return Forked(int(pid), report, open(out, "rb"), open(err, "rb"), self)

    def _line(self, report: int) -> str:
        """The first thing that comes; the wait status may be right behind it."""
        line = b""
        deadline = time.monotonic() + SECONDS
        while not line.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([report], [], [], left)
            byte = os.read(report, 1) if ready else b""
            if not byte:
                raise self.died("before it had started a worker")
            line += byte
        return line.decode().strip()

    def died(self, when: str) -> ServerDied:
        """The error of a test, with what the server has said."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._text += (self._said.read(1 << 16) or b"").decode(errors="replace")
        self._connection.close()
        return ServerDied(f"the fork server died {when}: {self._text}")

    @property
    def lives(self) -> bool:
        try:
            return bool(self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self, seconds: float) -> None:
        """Leave it, and wait so long for the end of one that was started from here: others may have
        it still."""
        self._connection.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)


def start(
    listener: socket.socket, lock: Path, said: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """The process, which says what it has to say to a pipe: workers have pipes too."""
    with open(said, "r+b", buffering=0) as pipe:
        return subprocess.Popen(
            [sys.executable, "-P", str(SERVER), str(listener.fileno()), str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env={ROOM: "-" * 16384, **environment},
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )


class WarmStart:
    """Starts workers, by a server that it starts for the first of them."""

    def __init__(self, cold: Start, always_cold: Callable[[], bool], folder: Path) -> None:
        """`always_cold`: whether the test that runs is about the start of a process. `folder`: of
        the servers, which are shared by all who have the same."""
        self._cold = cold
        self._always_cold = always_cold
        self._folder = folder
        self._first = {k: v for k, v in os.environ.items() if k not in READ_LATE}
        self._inherited = inherited_state()
        self._lock = threading.Lock()
        self._servers: dict[int, Server] = {}
        """By the signals that they ignore, which Triton's first compile in this process changes."""

    def start(self, command: list[str], environment: dict[str, str], inherited: list[int]) -> Any:
        """In place of `start_process`."""
        why = "the test is marked" if self._always_cold() else self._why_cold(environment)
        python, _, *arguments = command
        if python != sys.executable:
            why = "another Python records"
        if why:
            log.info("a cold start: %s", why)
            return self._cold(command, environment, inherited)
        request = {
            "arguments": arguments,
            "environment": environment,
            "folder": os.getcwd(),
            "umask": umask(),
        }
        with self._lock:  # drivers have threads of their own
            server = self._servers.get(signals := ignored_signals())
            if server is None or not server.lives:
                server = Server(self._folder, self._name(signals), self._first)
                self._servers[signals] = server
            return server.fork(request, inherited)

    def close(self, seconds: float) -> None:
        for server in self._servers.values():
            server.close(seconds)

    def _name(self, signals: int) -> str:
        """Of the server that has read what this process has."""
        read = [sorted(self._first.items()), self._inherited, signals]
        return hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]

    def _why_cold(self, environment: Mapping[str, str]) -> str:
        """What the server has read that is different now; "" for nothing."""
        for name in sorted(self._first.keys() | environment.keys()):
            if name not in READ_LATE and self._first.get(name) != environment.get(name):
                return f"{name} has changed"
        if inherited_state() != self._inherited:
            return "limits, blocked signals or the processors have changed"
        return ""


def inherited_state() -> list[str]:
    """Limits, blocked signals and processors of this process, which a new one has too."""
    status = Path("/proc/thread-self/status").read_text().splitlines()
    names = ("SigBlk:", "Cpus_allowed:")
    limits = Path("/proc/self/limits").read_text().splitlines()
    return [*(line for line in status if line.startswith(names)), *limits]


def ignored_signals() -> int:
    """By a process that this one starts, as bits."""
    status = Path("/proc/thread-self/status").read_text()
    return int(status.partition("SigIgn:")[2].split()[0], 16) & ~RESTORED


def umask() -> int:
    """Of this process, without changing it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("Umask:")[2].split()[0], 8)
