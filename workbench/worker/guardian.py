"""The guardian: the worker's parent, which leaves no process behind.

The worker process forks before it imports anything large; the child becomes the worker and the
parent waits here. When the worker ends, or the front end closes the lifeline (it was killed, or
wants an end), every descendant is killed. That includes those with a session of their own: orphans
come to the guardian because it is their subreaper (`prctl(2)`, PR_SET_CHILD_SUBREAPER). If the
guardian itself is killed, the kernel kills the worker (PR_SET_PDEATHSIG).

Last it removes the recording's own caches, a private temporary folder. A lock on the folder shows
that its guardian lives. A folder without one was left by a guardian and a front end that were both
killed; the next guardian removes it.

Only the standard library, and little of it: this runs before everything else.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator

RECORDING = "TCW_RECORDING"
"""Environment variable that names the recording to which a process belongs."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 5.0
"""Seconds after which it gives up on a process that cannot be killed (waiting for a disk)."""

_POLITE = 0.2
"""Seconds that a worker's programs have to end by themselves, when the worker is stopped."""

CACHES_PREFIX = "tcw-recording-"
_CACHES = re.compile(re.escape(CACHES_PREFIX) + r"[0-9a-f]{32}")
_OLD = 60.0
"""Seconds after which a folder of caches without a lock is nobody's: a guardian locks its own at
once."""
_MOST_SWEPT = 32


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when `parent`, which started it, is gone. The kernel
    watches the thread that forked: only a parent's main thread may start such a process."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def fork_worker(lifeline: int, status: int, caches: str = "") -> None:
    """Return in the child, which becomes the worker; the parent never returns. `caches`: the folder
    that the parent removes when all processes are gone; "" for none."""
    guardian = os.getpid()
    child_died, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # before the fork: the worker may leave orphans at once
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (child_died, wake, lifeline, status):
            os.close(number)
        os.setsid()
        die_with(guardian)
        return
    try:
        _guard(child, lifeline, status, child_died, wake, caches)
    finally:
        os._exit(0)


def _guard(child: int, lifeline: int, status: int, child_died: int, wake: int, caches: str) -> None:
    # Only the worker may hold the other pipes: their end is how the front end learns of its death.
    keep = {lifeline, status, child_died, wake}
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    for number in _open_descriptors():
        if number > 2 and number not in keep:
            with contextlib.suppress(OSError):
                os.close(number)
    _lock(caches)
    sweep(os.path.dirname(caches))
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    waited = None
    while waited is None and not stopped:
        # A signal wakes this through `child_died`; the lifeline is readable at its end.
        ready, _, _ = select.select([lifeline, child_died], [], [])
        if child_died in ready:
            os.read(child_died, 4096)
        waited = _reap(child)
        if lifeline in ready and not os.read(lifeline, 4096):
            stopped = True
    if waited is None:
        _end_programs(child)
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
    found = _kill_descendants(child)
    waited = found if waited is None else waited
    with contextlib.suppress(OSError):
        os.write(status, str(-1 if waited is None else waited).encode())
        os.close(status)
    remove_caches(caches)


def _lock(folder: str) -> int:
    """A descriptor that locks the folder until this process ends; -1 if another process does, or it
    is not a folder of ours."""
    try:
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1
    with contextlib.suppress(OSError):
        if os.fstat(number).st_uid == os.geteuid():
            import fcntl  # `tcw doctor` reads this module on every system

            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number
    os.close(number)
    return -1


def new_caches(mark: str = "") -> str:
    """A new private folder for a recording's caches. `mark`: the hexadecimal name of the
    recording."""
    import tempfile
    import uuid

    name = f"{CACHES_PREFIX}{mark or uuid.uuid4().hex}"
    folder = os.path.join(os.path.abspath(tempfile.gettempdir()), name)
    os.mkdir(folder, 0o700)
    return folder


@contextlib.contextmanager
def own_folder() -> Iterator[str]:
    """A new private folder, removed at the end. If this process is killed, a later guardian removes
    it like a recording's caches."""
    folder = new_caches()
    held = _lock(folder)
    try:
        yield folder
    finally:
        remove_caches(folder)
        if held >= 0:
            os.close(held)


def sweep(folder: str) -> None:
    """Remove the caches in `folder` whose guardian was killed."""
    if not folder:
        return
    try:
        with os.scandir(folder) as entries:
            paths = [entry.path for entry in entries if _CACHES.fullmatch(entry.name)]
    except OSError:
        return
    for path in paths[:_MOST_SWEPT]:
        with contextlib.suppress(OSError):
            entry = os.lstat(path)
            old = time.time() - entry.st_mtime > _OLD
            if old and stat.S_ISDIR(entry.st_mode) and (held := _lock(path)) >= 0:
                remove_caches(path)
                os.close(held)


def remove_caches(folder: str) -> None:
    """Remove a recording's caches; of a link in their place, keep it and its target."""
    if _CACHES.fullmatch(os.path.basename(folder)):
        import shutil  # not before the fork: each worker would import it

        shutil.rmtree(folder, ignore_errors=True)


def _open_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return list(range(3, 256))


def _reap(child: int) -> int | None:
    """Reap dead children; the wait status of `child` if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = status


def _end_programs(child: int) -> None:
    """Ask the programs that the worker has started to end, while it stands still.

    A C++ compiler removes its temporary files then; nothing else knows their names.
    """
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGSTOP)
    programs = descendants(child)
    for pid in programs:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _POLITE
    while time.monotonic() < deadline and any(map(runs, programs)):
        time.sleep(0.002)


def _kill_descendants(child: int) -> int | None:
    """Kill until no child is left; the wait status of `child` if it was not yet reaped."""
    found = None
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        reaped = _reap(child)
        found = reaped if found is None else found
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return found
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    return found


def kill_marked(mark: str) -> None:
    """Kill every process with `RECORDING=mark` in its environment. For the front end, after the
    guardian was killed and ancestry says nothing."""
    wanted = f"{RECORDING}={mark}".encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/environ", "rb") as stream:
                    found = wanted in stream.read().split(b"\0")
                if found:
                    os.kill(int(name), signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Process ids of all descendants of `root`."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                children.setdefault(int(_fields(int(name))[1]), []).append(int(name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def runs(pid: int) -> bool:
    """Whether the process has not ended."""
    try:
        return _fields(pid)[0] != b"Z"
    except (OSError, IndexError):
        return False


def children_cpu_seconds() -> float:
    """CPU seconds of living descendants, and of children that they and this process waited for.

    Inductor builds in processes that outlive a compile, so these have to be queried one by one.
    """
    spent = os.times()
    total = spent.children_user + spent.children_system
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError, ValueError):
            total += sum(map(int, _fields(pid)[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def cpu_seconds(pid: int) -> float:
    """User and system seconds of a process, all its threads."""
    return sum(map(int, _fields(pid)[11:13])) / os.sysconf("SC_CLK_TCK")


def _fields(pid: int) -> list[bytes]:
    """What the kernel says of a process, from its state on: proc_pid_stat(5), field 3."""
    with open(f"/proc/{pid}/stat", "rb") as stream:
        # The program's name is in parentheses and may hold any byte.
        return stream.read().rpartition(b")")[2].split()
