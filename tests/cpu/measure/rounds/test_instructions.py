"""Counters of the kernel: what this process and those that it starts do. Where the processor's are
not to be had, the same is counted of the kernel's own clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tcw.compiler.measure.rounds.instructions import counter

SOFTWARE, TASK_CLOCK = 1, 1
WORK = "for _ in range(3_000_000): pass"


def test_children_are_counted() -> None:
    count = counter(SOFTWARE, TASK_CLOCK)
    if count is None:
        pytest.skip("this system has no perf_event_open")
    first = count()
    exec(WORK)
    own = count()
    subprocess.run([sys.executable, "-I", "-c", WORK], check=True)
    both = count()
    assert first is not None
    assert own is not None
    assert both is not None
    assert own - first > 1e6
    assert both - own > 1e6


def test_instructions_hardly_differ() -> None:
    count = counter()
    if count is None:
        pytest.skip("this processor's counters are not to be had")
    found = []
    for _ in range(3):
        before = count()
        exec(WORK)
        after = count()
        if before is None or after is None:
            pytest.skip("another program shares the counter")
        found.append(after - before)
    assert min(found) > 3e6
    assert max(found) < 1.05 * min(found)


def test_what_there_is_not_is_not_counted() -> None:
    assert counter(kind=99, event=1) is None
