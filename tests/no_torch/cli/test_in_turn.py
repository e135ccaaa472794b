"""Calls of two sides timed in turn: the order, the noise, and what happens without times."""

from __future__ import annotations

from typing import Any

from tcw.compiler.protocol.commands import Rerun, TimeCalls
from tcw.compiler.trace.records import CallTimes, End, Settings, Waiting, WhatIf
from tcw.viewers.recording import Recording
from tcw.viewers.summary.differences import difference
from tcw.viewers.summary.differences.difference_words import call_words
from tcw.workbench.cli.in_turn import ROUNDS, TURNS, in_turn
from tcw.workbench.cli.trials import Start
from tcw.workbench.worker.client import Driver
from tcw.workbench.worker.trace_file import OnRecord

SIDES = ((Settings(file="/a.py"), ""), (Settings(file="/b.py"), "/python"))


class Side:
    """A worker with one run, whose calls take these seconds each turn."""

    def __init__(self, name: str, log: list[str], seconds: list[float], reason: str = "") -> None:
        self.name, self.log, self.seconds, self.reason = name, log, seconds, reason
        self.stopped = False

    def start(self, settings: Settings, on_record: OnRecord, first: Rerun) -> Driver:
        self.give = on_record
        assert not first.wait, "the first run waits for nobody"
        self._wait()
        return self

    def _wait(self) -> None:
        self.give(Waiting(number=1, kind="end", why="the run is over", stage="run"))

    def send(self, command: Any) -> None:
        assert isinstance(command, TimeCalls)
        self.log.append(f"{self.name}{command.rounds}")
        if self.reason == "gone":
            self.give(End(status="crashed", seconds=1.0, reason="signal 11"))
            return
        seconds = self.seconds[(len(self.log) // 2) % len(self.seconds)]
        times = () if self.reason else (seconds,) * command.rounds
        self.give(CallTimes(run=1, seconds=times, reason=self.reason))
        self._wait()

    def stop(self) -> None:
        self.stopped = True

    def join(self, timeout: float | None = None) -> bool:
        return True


def timed(first: list[float], second: list[float], reason: str = "") -> tuple[WhatIf, list[str]]:
    log: list[str] = []
    sides = {"": Side("a", log, first), "/python": Side("b", log, second, reason)}

    def started_by(python: str) -> Start:
        return sides[python].start

    found = in_turn(SIDES, start=started_by)
    assert all(side.stopped for side in sides.values()), "a worker is left"
    return found, log


def words(found: WhatIf) -> str:
    recording = Recording()
    (measured,) = difference(recording, recording, [found]).measured
    return call_words(measured)


def test_the_sides_have_turns_and_neither_is_always_first() -> None:
    found, log = timed([0.010], [0.008])
    assert log[:2] == ["a1", "b1"], "both compile before any counts"
    turns = ["".join(log[at : at + 2]) for at in range(2, len(log), 2)]
    assert len(turns) == TURNS == found.pairs
    assert set(turns) == {f"a{ROUNDS}b{ROUNDS}", f"b{ROUNDS}a{ROUNDS}"}
    assert turns[0] != turns[1]
    assert words(found) == "a call takes 10.0 → 8.00 ms, -2.00 ms ±0.10: 20% faster (20 turns)"


def test_what_is_within_the_noise_is_no_difference() -> None:
    found, _ = timed([0.010, 0.014, 0.009, 0.012], [0.012, 0.009, 0.013, 0.0101])
    assert found.noise > abs(found.difference)
    assert ": in noise (" in words(found)


def test_without_times_there_is_a_reason() -> None:
    found, _ = timed([0.01], [0.01], "run 1 cannot be called again (failed)")
    assert found.before is None
    assert words(found) == "call time not measured: run 1 cannot be called again (failed)"
    found, _ = timed([0.01], [0.01], "gone")
    assert words(found) == "call time not measured: the worker ended: crashed signal 11"
