"""The arithmetic of timing, on times that are given; no test here asserts a measured time."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from compiler.measure.rounds import speed
from compiler.measure.rounds.speed import Contender, Times
from compiler.measure.rounds.team import Team


def contender(call: int = 1, log: list[str] | None = None) -> Contender:
    def side(name: str):
        def prepare():
            def run() -> None:
                assert not gc.isenabled() or log is None or len(log) < 4
                if log is not None:
                    log.append(name)

            return run

        return prepare

    return Contender(call, side("eager"), side("compiled"))


def test_pairs_are_interleaved_and_swapped() -> None:
    log: list[str] = []
    (times,) = speed.measure([contender(log=log)])
    assert len(times.eager) == len(times.compiled) == speed.PAIRS
    assert log[:4] == ["eager", "compiled", "eager", "compiled"]
    assert log[4:8] == ["eager", "compiled", "compiled", "eager"]
    assert gc.isenabled()


def test_a_slow_model_is_timed_ten_times(monkeypatch: pytest.MonkeyPatch) -> None:
    (times,) = speed.measure([contender()], seconds=0.0)
    assert len(times.eager) == speed.LEAST
    monkeypatch.setattr(speed, "PATIENCE", 0.0)
    (times,) = speed.measure([contender()], seconds=0.0)
    assert len(times.eager) == 3


def test_medians_ratios_and_noise() -> None:
    times = [Times(eager=[2.0, 2.2, 1.8, 9.0, 2.0], compiled=[1.0, 1.1, 0.9, 1.0, 1.0])]
    found = speed.summarise([contender()], times, [(11.0, 0)], 7.0, "forward")
    assert found.eager_ms == 2000
    assert found.compiled_ms == 1000
    assert found.speedup == pytest.approx(2.0)
    assert found.noise == 0.01
    assert not found.in_noise
    assert found.eager_mad_ms == pytest.approx(200)
    assert found.compile_seconds == 10.0
    assert found.compile_cpu_seconds == 7.0
    assert found.pairs == 5


def test_a_difference_inside_the_spread_is_none() -> None:
    times = [Times(eager=[1.0, 1.3, 0.8, 1.2, 1.1], compiled=[1.0, 1.0, 1.0, 1.0, 1.0])]
    found = speed.summarise([contender()], times, [], None, "forward")
    assert found.speedup == pytest.approx(1.1)
    assert found.noise == pytest.approx(3 * 0.1 / 1.1)
    assert found.in_noise


def test_several_sets_are_averaged_per_call() -> None:
    times = [Times([1.0] * 3, [1.0] * 3), Times([3.0] * 3, [1.0] * 3)]
    found = speed.summarise(
        [contender(1), contender(3)], times, [(5.0, 0), (1.0, 0), (4.0, 1)], None, "forward"
    )
    assert found.eager_ms == 2000
    assert found.speedup == 2.0
    assert [(one.call, one.eager_ms, one.pairs) for one in found.sets] == [
        (1, 1000.0, 3),
        (3, 3000.0, 3),
    ]
    assert found.compile_seconds == 7.0


def test_cpu_seconds_count_children_that_still_live() -> None:
    program = (
        "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    )
    before = speed.children_cpu_seconds()
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    assert speed.children_cpu_seconds() - before >= 0.25
    child.communicate(b"\n")


class Stream:
    """What happens on a GPU, in order. Events are reached once the host has launched so much."""

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

        monkeypatch.setattr(speed.torch.cuda, "Event", Event)
        monkeypatch.setattr(speed.torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(speed.torch.cuda, "_sleep", self.sleep, raising=False)

    def sleep(self, cycles: int) -> None:
        self.log.append("sleep")
        self.slept.append(cycles)


def test_a_gpu_times_its_kernels_itself_and_does_not_wait_for_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream(monkeypatch, ready=[False])
    run = speed.DeviceRun(lambda: stream.log.append("run"), launches=3)
    assert speed._timed(lambda: run, Team(1)) == 2e-3
    assert stream.log == ["sleep", "event", "run", "event", "wait"]
    assert stream.slept == [3 * speed.CYCLES]


def test_a_host_that_is_slower_than_the_gpus_sleep_is_given_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream(monkeypatch, ready=[True, True, False, False])
    run = speed.DeviceRun(lambda: None)
    assert run.seconds() == 2e-3
    assert stream.slept == [speed.CYCLES, 2 * speed.CYCLES, 4 * speed.CYCLES]
    run.seconds()
    assert stream.slept[-1] == 4 * speed.CYCLES, "it has learnt"
    stream = Stream(monkeypatch, ready=[True] * 40)
    speed.DeviceRun(lambda: None).seconds()
    assert stream.slept[-1] >= speed.MOST_CYCLES, "it ends, whatever the host does"
