"""The times that graphs note, and the clock across several calls."""

from __future__ import annotations

import pytest

from tcw.compiler.measure.probes import code_probe
from tcw.compiler.measure.probes.clock import HostClock, LateReadings, Reading
from tcw.compiler.measure.probes.code_probe import graph_readings, marked


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The excess in a step's reading, and the cost of a pair of marks."""
    monkeypatch.setattr(code_probe, "cost_of_marks", lambda: (10, 25))


@pytest.mark.usefixtures("costs")
def test_steps_graph_and_marks_sum_up_to_what_passed() -> None:
    """A graph from 0 to 1000: its wrapper takes 200, its steps 300 and 450, their marks 50."""
    steps, cost = marked(6, [(1, 100), (-1, 410), (2, 500), (-2, 960)])
    readings, took = graph_readings(6, 0, 1000, steps, cost)
    assert [(reading.key, reading.start, reading.ns) for reading in readings] == [
        (6, 0, 950),
        (7, 100, 300),
        (8, 500, 450),
    ]
    assert readings[0].ns - sum(reading.ns for reading in readings[1:]) == 200
    assert readings[0].ns + took == 1000


@pytest.mark.usefixtures("costs")
def test_a_step_that_was_not_stopped_is_none() -> None:
    assert marked(6, [(1, 100), (-1, 210), (2, 300)]) == ([(7, 100, 100)], 25)


def test_a_clock_reads_each_call_by_itself_and_late() -> None:
    asked: list[str] = []

    def noted(name: str, start: int) -> LateReadings:
        asked.append(name)
        return [Reading(1, start, 5)], 3

    clock = HostClock()
    clock.later(lambda: noted("warm", 1))
    for number, name in enumerate(("first", "second"), 2):
        clock.begin()
        clock.later(lambda name=name, number=number: noted(name, number))
        clock.took(4)
        clock.end()
    assert asked == []
    _, first, second = clock.calls
    assert [(reading.start, reading.ns) for reading in first.readings()] == [(2, 5)]
    assert first.took_ns == 7
    assert [reading.start for reading in clock.readings()] == [3]
    assert second.took_ns == 7
    assert asked == ["first", "second"]
    assert [reading.start for reading in first.readings()] == [2]
    assert first.took_ns == 7


def test_what_a_call_left_open_is_none_of_the_next() -> None:
    clock = HostClock()
    clock.start(1)
    clock.begin()
    clock.stop(1)
    assert clock.readings() == []
