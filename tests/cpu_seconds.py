"""CPU seconds of each test, with all processes below pytest's: what a gate on two cores pays for.

    CPU_SECONDS=FILE pytest -p tests.cpu_seconds

Appends lines to FILE.WORKER: CPU seconds, wall seconds, test. The fixtures of a file count for the
first test that asks for them, and a process whose parent has ended is lost.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")


def spent() -> float:
    """By this process, its children, living and waited for, and theirs."""
    ticks: dict[int, int] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
        children[int(fields[1])].append(int(folder.name))
    total, left = 0, [os.getpid()]
    while left:
        process = left.pop()
        total += ticks.get(process, 0)
        left += children[process]
    return total / TICKS


def note(what: str, cpu: float, wall: float) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open(f"{os.environ['CPU_SECONDS']}.{worker}", "a", encoding="utf-8") as file:
        file.write(f"{cpu:.2f}\t{wall:.2f}\t{what}\n")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    cpu, wall = spent(), time.monotonic()
    yield
    note(item.nodeid, spent() - cpu, time.monotonic() - wall)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, None, None]:
    cpu, wall = spent(), time.monotonic()
    note("before collection", cpu, 0.0)
    yield
    note("collection", spent() - cpu, time.monotonic() - wall)
