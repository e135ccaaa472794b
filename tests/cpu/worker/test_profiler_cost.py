"""What torch's profiler takes for each event, from calls whose times are written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.worker.profiler_cost import EventCost, point
from workbench.worker.profiling_rounds import Lap

COST = EventCost(((1e-6, 2e-7), (1e-5, 4e-7)))


def test_between_the_points_it_rises_with_the_logarithm_of_the_time() -> None:
    assert COST(1e-6) == 2e-7
    assert COST(10**-5.5) == pytest.approx(3e-7)
    assert (COST(1e-9), COST(1.0)) == (2e-7, 4e-7)


@given(st.floats(1e-9, 1.0), st.floats(1e-9, 1.0))
def test_it_rises_throughout(one: float, other: float) -> None:
    assert (COST(one) - COST(other)) * (one - other) >= -1e-20


def test_where_nothing_is_profiled_it_is_nothing() -> None:
    assert EventCost()(1e-6) == 0.0


def test_what_events_add_is_the_difference_of_undisturbed_calls() -> None:
    """Of three rounds, each with one disturbed call in each way."""
    plain, watched = [], []
    for number in range(3):
        for preempted in (0, 0, 1):
            extra = 9.0 * preempted
            plain.append(Lap({"": 1e-3 + extra}, preempted=preempted, round=number))
            watched.append(Lap({"": 1.1e-3 + extra}, preempted=preempted, events=200, round=number))
    between, each, noise = point({"plain": plain, "probed": watched})
    assert between == pytest.approx(1e-3 / 200)
    assert each == pytest.approx(1e-4 / 200)
    assert noise == pytest.approx(0.0)


def test_a_profiler_gives_no_time_back() -> None:
    laps = {"plain": [Lap({"": 1e-3})], "probed": [Lap({"": 0.9e-3}, events=10)]}
    assert point(laps)[1] == 0.0
