"""A run timed by the GPU's own clock, on a simulated GPU."""

from __future__ import annotations

import pytest

from tcw.compiler.measure.rounds import whole_runs
from tcw.compiler.measure.rounds.team import Team
from tcw.compiler.measure.rounds.whole_runs import DeviceRun, timed


class Stream:
    """The events on a GPU, in order. They are reached once the host has launched enough."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ready: list[bool]) -> None:
        self.log: list[str] = []
        self.slept: list[int] = []
        stream = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                stream.log.append("event")

            def query(self) -> bool:
                return ready.pop(0)

            def synchronize(self) -> None:
                stream.log.append("wait")

            def elapsed_time(self, end: Event) -> float:
                return 2.0

        monkeypatch.setattr(whole_runs.torch.cuda, "Event", Event)
        monkeypatch.setattr(whole_runs.torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(whole_runs.torch.cuda, "_sleep", self.sleep, raising=False)

    def sleep(self, cycles: int) -> None:
        self.log.append("sleep")
        self.slept.append(cycles)


def test_a_gpu_times_its_kernels_itself_and_does_not_wait_for_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream(monkeypatch, ready=[False])
    run = DeviceRun(lambda: stream.log.append("run"), launches=3)
    assert timed(lambda: run, Team(1)) == 2e-3
    assert stream.log == ["sleep", "event", "run", "event", "wait"]
    assert stream.slept == [3 * whole_runs.CYCLES]


def test_a_host_that_is_slower_than_the_gpus_sleep_is_given_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream(monkeypatch, ready=[True, True, False, False])
    run = DeviceRun(lambda: None)
    assert run.seconds() == 2e-3
    assert stream.slept == [whole_runs.CYCLES, 2 * whole_runs.CYCLES, 4 * whole_runs.CYCLES]
    run.seconds()
    assert stream.slept[-1] == 4 * whole_runs.CYCLES, "it has learnt"
    stream = Stream(monkeypatch, ready=[True] * 40)
    DeviceRun(lambda: None).seconds()
    assert stream.slept[-1] >= whole_runs.MOST_CYCLES, "it ends, whatever the host does"
