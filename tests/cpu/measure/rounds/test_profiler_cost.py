"""The cost of torch's profiler per event, from calls with given times."""

from __future__ import annotations

import pytest

from tcw.compiler.measure.probes.between import EagerRun
from tcw.compiler.measure.rounds.laps import Lap, Laps
from tcw.compiler.measure.rounds.profiler_cost import MOST, event_cost, take_off


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
    take_off({"eager": laps})
    even, odd = laps["probed"][0], laps["probed"][3]
    for lap, each in ((even, 1e-6), (odd, 5e-7)):
        assert lap.eager[0].ns == round(50_000 - 20.5 * each * 1e9)
        assert lap.took == pytest.approx(each * 200)


def test_both_sides_are_corrected_by_what_the_eager_one_tells() -> None:
    """So that of a call that both make the same is taken off. On a busy machine the two told 2 µs
    and none, and attention, with 60 events in it, read as 100 µs slower compiled."""
    eager, compiled = rounds((1e-4, 1e-4)), rounds((0.0, 0.0))
    compiled["between"] = compiled.pop("probed")
    take_off({"eager": eager, "compiled": compiled})
    assert compiled["between"][0].eager[0].ns == eager["probed"][0].eager[0].ns


def test_of_a_small_operation_half_is_left() -> None:
    laps = rounds((1e-4, 1e-4))
    take_off({"eager": laps})
    assert laps["probed"][0].eager[1].ns == 50


def test_a_profiler_gives_no_time_back() -> None:
    plain, watched = [Lap({"": 1e-3})], [Lap({"": 0.9e-3}, events=10)]
    assert event_cost(plain, watched, 0) == 0.0


def test_what_others_add_is_none_of_the_events() -> None:
    """On a busy machine a call of 20 ms took 200 with the profiler and 185 without: 75 µs per
    event, so eager operations were left with half of their time."""
    plain, watched = [Lap({"": 0.185})], [Lap({"": 0.2}, events=200)]
    assert event_cost(plain, watched, 0) == MOST


def test_one_round_is_corrected_by_itself() -> None:
    plain, watched = [Lap({"": 1e-3})], [Lap({"": 1.1e-3}, events=100)]
    assert event_cost(plain, watched, 1) == pytest.approx(1e-6)
