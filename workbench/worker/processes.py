"""The processes below one, from /proc. Only the standard library: the guardian needs it early."""

from __future__ import annotations

import contextlib
import os


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
