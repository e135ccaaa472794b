"""CallRounds beside other programs: contention is reported, and no waiting counts as time of a
call."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
import torch

from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import prepare
from tcw.compiler.measure.probes.call_rounds import CallRounds, CallSide, plan_of
from tcw.compiler.measure.probes.laps import Lap
from tcw.compiler.measure.rounds.team import Team

CONTENDED = Team.contended
"""What `tests/cpu/conftest.py` replaces."""


def rounds_of(seconds: float) -> CallRounds:
    """Of a call that uses a processor for so long."""

    def model(x: torch.Tensor) -> torch.Tensor:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass
        return x + 1

    inputs = InputSet((torch.zeros(4),), {})
    side = CallSide(lambda: prepare(model, inputs, "no-grad"), {})
    return CallRounds({"eager": side}, Team(1))


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not tell")
def test_a_busy_processor_is_told_and_what_is_waited_is_taken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Team, "contended", CONTENDED)
    allowed = os.sched_getaffinity(0)
    one = min(allowed)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            os.sched_setaffinity(other.pid, {one})
            os.sched_setaffinity(0, {one})
            rounds = rounds_of(0.03)
            with rounds.team:
                rounds.warm_up()
                rounds.run(plan_of(10))
        finally:
            os.sched_setaffinity(0, allowed)
            other.kill()
    assert rounds.team.contended
    laps = rounds.laps["eager"]["plain"]
    assert sum(lap.running() for lap in laps) < 0.9 * sum(lap.seconds for lap in laps)
    assert all(lap.running() >= 0 for lap in laps)


def test_what_a_phase_waited_is_taken_off_that_phase() -> None:
    lap = Lap({"forward": 3.0, "backward": 5.0}, waits={"backward": 1.5})
    assert lap.seconds == 8.0
    assert lap.running() == 6.5
    assert lap.running("forward") == 3.0
    assert lap.running("backward") == 3.5
