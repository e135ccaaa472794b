"""The threads of a parallel region: found, pinned, and seen to wait."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from tcw.compiler.measure.rounds import team as team_module
from tcw.compiler.measure.rounds.team import Team, Watch, team_of

CONTENDED = Team.contended
"""What `tests/cpu/conftest.py` replaces."""
PROCESSORS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
SCHEDSTAT = "/proc/self/schedstat"
two = pytest.mark.skipif(len(PROCESSORS) < 2, reason="needs two processors")
told = pytest.mark.skipif(not os.path.exists(SCHEDSTAT), reason=f"the system has no {SCHEDSTAT}")


def ran(thread: int) -> int:
    with open(f"/proc/self/task/{thread}/schedstat") as stream:
        return int(stream.read().split()[0])


@contextmanager
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@told
def test_the_team_runs_what_torch_does_in_parallel() -> None:
    values = torch.zeros(1 << 20)
    with two_threads():
        torch.sin(values)
        caller, other = team_of(2)
        assert (caller, other) == tuple(team_of(2))
        before = ran(other)
        for _ in range(20):
            torch.sin(values)
        assert ran(other) > before
    assert caller in {int(name) for name in os.listdir("/proc/self/task")}


def test_one_thread_is_alone() -> None:
    assert len(team_of(1)) == 1


@two
@pytest.mark.parametrize("fails", [False, True])
def test_each_has_a_processor_of_its_own_until_the_block_ends(fails: bool) -> None:
    with two_threads():
        team = Team(2)
        before = [os.sched_getaffinity(thread) for thread in team.threads]
        try:
            with team:
                team.keep_apart()
                team.keep_apart()
                kept = [os.sched_getaffinity(thread) for thread in team.threads]
                if fails:
                    raise ValueError("mine")
        except ValueError:
            assert fails
        assert [len(one) for one in kept] == [1, 1]
        assert kept[0] != kept[1]
        assert [os.sched_getaffinity(thread) for thread in team.threads] == before


@two
def test_more_threads_than_processors_stay_where_they_are() -> None:
    with two_threads(), Team(2) as team:
        every = [os.sched_getaffinity(thread) for thread in team.threads]
        for thread in team.threads:
            os.sched_setaffinity(thread, PROCESSORS[:1])
        try:
            team.keep_apart()
            assert {len(os.sched_getaffinity(thread)) for thread in team.threads} == {1}
            assert {min(os.sched_getaffinity(thread)) for thread in team.threads} == {PROCESSORS[0]}
        finally:
            for thread, allowed in zip(team.threads, every, strict=True):
                os.sched_setaffinity(thread, allowed)


def test_a_tenth_of_waiting_is_told_of_runs_that_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Team, "contended", CONTENDED)
    with Team(1) as team:
        team.note(0.01, 0.01)
        assert not team.contended  # a single time slice of the system proves nothing yet
        team.note(0.9, 0.05)
        assert not team.contended
        team.note(0.5, 0.2)
        assert team.contended


@told
@pytest.mark.skipif(not PROCESSORS, reason="needs processors to choose from")
def test_a_thread_that_shares_its_processor_waits() -> None:
    allowed = os.sched_getaffinity(0)
    with (
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other,
        Team(1) as team,
    ):
        try:
            os.sched_setaffinity(other.pid, PROCESSORS[:1])
            os.sched_setaffinity(team.threads[0], PROCESSORS[:1])
            watch, began = team.watch(), time.perf_counter_ns()
            while time.perf_counter_ns() < began + 500_000_000:
                pass
            ended = time.perf_counter_ns()
            assert watch.longest() > 0.02
            assert watch.caller(began, ended) > 0.02
            now = time.perf_counter_ns()
            assert watch.caller(now, now) < 0.02, "since it was asked for the last time"
        finally:
            os.sched_setaffinity(team.threads[0], allowed)
            other.kill()


def test_a_wait_while_the_count_is_read_is_not_part_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In microseconds: the clock, and the thread's waiting time until then."""
    now = [0]
    waited = [0.0]

    def passes(microseconds: int, waiting: bool = False) -> None:
        now[0] += 1000 * microseconds
        waited[0] += microseconds / 1e6 * waiting

    monkeypatch.setattr(team_module, "perf_counter_ns", lambda: now[0])
    monkeypatch.setattr(team_module, "waited", lambda _: waited[0])
    watch = Watch([1])
    passes(4000, waiting=True)  # the read has returned, and another program runs first
    began = now[0]
    passes(1000)
    passes(4000, waiting=True)
    passes(1000)
    ended = now[0]
    passes(3000, waiting=True)
    assert watch.caller(began, ended) == pytest.approx(4e-3)
    began = now[0]
    passes(2000)
    assert watch.caller(began, now[0]) == 0.0
    passes(10)
    began = now[0]
    passes(1000, waiting=True)
    assert watch.caller(began, now[0]) == pytest.approx(0.99e-3), "reading takes microseconds"
