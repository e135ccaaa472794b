"""The times that graphs note, and the clock across several calls."""

from __future__ import annotations

import pytest

from tcw.compiler.measure.probes import stamps
from tcw.compiler.measure.probes.clock import HostClock, Reading, Told
from tcw.compiler.measure.probes.stamps import stamped, told


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The excess in a step's reading, and the cost of a pair of stamps."""
    monkeypatch.setattr(stamps, "cost_of_stamps", lambda: (10, 25))


@pytest.mark.usefixtures("costs")
def test_steps_graph_and_stamps_sum_up_to_what_passed() -> None:
    """A graph from 0 to 1000: its wrapper takes 200, its steps 300 and 450, two pairs 50."""
    steps, cost = stamped((7, 8), (100, 410, 500, 960))
    readings, took = told(6, 0, 1000, steps, cost)
    assert [(one.key, one.start, one.ns) for one in readings] == [
        (6, 0, 950),
        (7, 100, 300),
        (8, 500, 450),
    ]
    assert readings[0].ns - sum(one.ns for one in readings[1:]) == 200
    assert readings[0].ns + took == 1000


@pytest.mark.usefixtures("costs")
def test_a_step_that_was_not_stopped_is_none() -> None:
    assert stamped((7, 8), (100, 210, 300)) == ([(7, 100, 100)], 25)


def test_a_clock_reads_each_call_by_itself_and_late() -> None:
    asked: list[str] = []

    def noted(name: str, start: int) -> Told:
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
    assert [(one.start, one.ns) for one in first.readings()] == [(2, 5)]
    assert first.took_ns == 7
    assert [one.start for one in clock.readings()] == [3]
    assert second.took_ns == 7
    assert asked == ["first", "second"]
    assert [one.start for one in first.readings()] == [2]
    assert first.took_ns == 7


def test_what_a_call_left_open_is_none_of_the_next() -> None:
    clock = HostClock()
    clock.start(1)
    clock.begin()
    clock.stop(1)
    assert clock.readings() == []


def test_stamps_cost_something() -> None:
    own, pair = stamps.cost_of_stamps()
    assert 0 < own <= pair
