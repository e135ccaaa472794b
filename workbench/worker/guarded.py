"""A test of the guardian: whether it can end and remove what a killed recording leaves.

The front end starts a worker that only waits, and a process with a session of its own, then closes
the lifeline as if it had been killed. Both must end, and the folder must be removed.
"""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time

from tcw.workbench import own_command
from tcw.workbench.worker.guardian import fork_worker, new_caches, remove_caches

START_SECONDS = 20.0
"""How long its processes may take to start."""
END_SECONDS = 10.0
"""How long they may take to end; by themselves they end a little later."""
_READY = b"waiting\n"


def run(arguments: list[str]) -> None:
    """The worker of the test: `CACHES LIFELINE STATUS`."""
    caches, lifeline, status = arguments
    fork_worker(int(lifeline), int(status), caches)
    if os.fork() == 0:
        os.setsid()
        os.write(1, _READY)
    time.sleep(START_SECONDS + END_SECONDS)
    os._exit(0)


def command(caches: str, lifeline: int, status: int) -> list[str]:
    return own_command("--worker", "guarded", caches, str(lifeline), str(status))


def guardian_fault() -> str:
    """Why the guardian does not work on this machine; "" if it does. Takes about 0.1 s."""
    try:
        caches = new_caches()
    except OSError as error:
        return f"no folder in {os.path.abspath(tempfile.gettempdir())}: {error.strerror}"
    try:
        return _trial(caches)
    except OSError as error:
        return f"it does not start: {error.strerror or error}"
    finally:
        remove_caches(caches)


def _trial(caches: str) -> str:
    lifeline, held = os.pipe()
    status, write_status = os.pipe()
    try:
        process = subprocess.Popen(
            command(caches, lifeline, write_status),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(lifeline, write_status),
        )
    except OSError:
        os.close(held)
        raise
    finally:
        os.close(lifeline)
        os.close(write_status)
        os.close(status)
    assert process.stdout is not None
    with process.stdout as waiting:
        started = _read(waiting.fileno(), START_SECONDS) == _READY
        os.close(held)
        if not started:
            process.kill()
            process.wait()
            return f"it does not start: exit code {process.returncode}"
        ended = _read(waiting.fileno(), END_SECONDS) == b""
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "it does not end"
    if not ended:
        return "a process with a session of its own survives it"
    return f"it leaves {caches}" if os.path.exists(caches) else ""


def _read(number: int, seconds: float) -> bytes | None:
    """The next bytes, b"" at the end, None if none come in time."""
    ready, _, _ = select.select([number], [], [], seconds)
    return os.read(number, 4096) if ready else None
