"""CPU seconds: of a warm run, and of the processes below this one."""

from __future__ import annotations

import os
import time

from compiler.measure.calls.runs import Prepare


def cpu_of(prepare: Prepare) -> float:
    """CPU seconds of this process for one warm run."""
    run = prepare()
    start = time.process_time()
    run()
    return time.process_time() - start


def children_cpu_seconds() -> float:
    """CPU seconds of living descendants, and of children that they and this process waited for.

    Inductor builds in processes that outlive a compile, so these have to be queried one by one.
    """
    spent = os.times()
    total = spent.children_user + spent.children_system
    ticks = os.sysconf("SC_CLK_TCK")
    known = {os.getpid()}
    found: dict[int, tuple[int, float]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return total
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:
                parts = stream.read().rpartition(b")")[2].split()
            found[int(name)] = (int(parts[1]), sum(int(part) for part in parts[11:15]) / ticks)
        except (OSError, IndexError, ValueError):
            continue
    waiting = list(known)
    while waiting:
        parent = waiting.pop()
        for pid, (above, seconds) in found.items():
            if above == parent and pid not in known:
                known.add(pid)
                waiting.append(pid)
                total += seconds
    return total
