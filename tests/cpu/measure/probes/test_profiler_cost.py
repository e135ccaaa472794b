"""The cost of torch's profiler per event, from calls with given times."""

from __future__ import annotations

import pytest

from tcw.compiler.measure.probes.between import EagerRun
from tcw.compiler.measure.probes.laps import Lap, Laps, event_cost, subtract_profiler


def operation(ns: int, events: float) -> EagerRun:
    return EagerRun("aten.add", "model", "", 0, ns, 1, events=events)


def rounds(added: tuple[float, float]) -> Laps:
    """Of six rounds, each with a disturbed call in each way; a profiled one takes 1 ms and as much
    more as it adds in an even round, and in an odd one."""
    plain, watched = [], []
    for number in range(6):
        for preempted in (0, 0, 1):
            extra = 9.0 * preempted
            plain.append(Lap({"": 1e-3 + extra}, preempted=preempted, turn=number))
            watched.append(
                Lap(
                    {"": 1e-3 + added[number % 2] + extra},
                    preempted=preempted,
                    events=200,
                    turn=number,
                    eager=[operation(50_000, 20.5), operation(100, 10.5)],
                )
            )
    return {"plain": plain, "probed": watched}


def test_what_events_add_is_the_difference_of_undisturbed_calls() -> None:
    laps = rounds((1e-4, 2e-4))
    assert event_cost(laps["plain"], laps["probed"], 0) == pytest.approx(1e-4 / 200)
    assert event_cost(laps["plain"], laps["probed"], 1) == pytest.approx(2e-4 / 200)


def test_each_round_is_corrected_by_the_others() -> None:
    """So the remainder of an account shows what differs between the two."""
    laps = rounds((1e-4, 2e-4))
    subtract_profiler({"eager": laps})
    even, odd = laps["probed"][0], laps["probed"][3]
    for lap, each in ((even, 1e-6), (odd, 5e-7)):
        assert lap.eager[0].ns == round(50_000 - 20.5 * each * 1e9)
        assert lap.took == pytest.approx(each * 200)


def test_both_sides_are_corrected_by_what_the_eager_one_tells() -> None:
    """So that of a call that both make the same is taken off."""
    eager, compiled = rounds((1e-4, 1e-4)), rounds((0.0, 0.0))
    compiled["between"] = compiled.pop("probed")
    subtract_profiler({"eager": eager, "compiled": compiled})
    assert compiled["between"][0].eager[0].ns == eager["probed"][0].eager[0].ns


def test_of_a_small_operation_half_is_left() -> None:
    laps = rounds((1e-4, 1e-4))
    subtract_profiler({"eager": laps})
    assert laps["probed"][0].eager[1].ns == 50


def test_a_profiler_gives_no_time_back() -> None:
    plain, watched = [Lap({"": 1e-3})], [Lap({"": 0.9e-3}, events=10)]
    assert event_cost(plain, watched, 0) == 0.0


def test_one_round_is_corrected_by_itself() -> None:
    plain, watched = [Lap({"": 1e-3})], [Lap({"": 1.1e-3}, events=100)]
    assert event_cost(plain, watched, 1) == pytest.approx(1e-6)
