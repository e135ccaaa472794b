"""The arithmetic of timing, on given times; no test here asserts a measured time."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from tcw.compiler.measure.rounds import speed
from tcw.compiler.measure.rounds.whole_runs import seconds_in_rounds


def contender(log: list[str] | None = None):
    def side(name: str):
        def prepare():
            def run() -> None:
                assert not gc.isenabled() or log is None or len(log) < 4
                if log is not None:
                    log.append(name)

            return run

        return prepare

    return [side("eager"), side("compiled")]


def test_pairs_are_interleaved_and_swapped() -> None:
    log: list[str] = []
    ((eager, compiled),) = seconds_in_rounds([contender(log)], speed.PLAN)
    assert len(eager) == len(compiled) == speed.PLAN.rounds
    assert log[:4] == ["eager", "compiled", "eager", "compiled"]
    assert log[4:8] == ["eager", "compiled", "compiled", "eager"]
    assert gc.isenabled()


def test_a_slow_model_is_timed_ten_times() -> None:
    ((eager, _),) = seconds_in_rounds([contender()], replace(speed.PLAN, seconds=0.0))
    assert len(eager) == speed.PLAN.least == 10
    plan = replace(speed.PLAN, seconds=0.0, patience=0.0)
    ((eager, _),) = seconds_in_rounds([contender()], plan)
    assert len(eager) == 3


def test_medians_ratios_and_noise() -> None:
    eager, compiled = [2.0, 2.2, 1.8, 9.0, 2.0], [1.0, 1.1, 0.9, 1.0, 1.0]
    found = speed.summarise([1], [eager], [compiled], [(11.0, 0)], 7.0, "forward")
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
    eager, compiled = [1.0, 1.3, 0.8, 1.2, 1.1], [1.0, 1.0, 1.0, 1.0, 1.0]
    found = speed.summarise([1], [eager], [compiled], [], None, "forward")
    assert found.speedup == pytest.approx(1.1)
    assert found.noise == pytest.approx(9 * 0.1 / 5**0.5 / 1.1)
    assert found.in_noise


def test_several_sets_are_averaged_per_call() -> None:
    eager, compiled = [[1.0] * 3, [3.0] * 3], [[1.0] * 3, [1.0] * 3]
    firsts = [(5.0, 0), (1.0, 0), (4.0, 1)]
    found = speed.summarise([1, 3], eager, compiled, firsts, None, "forward")
    assert found.eager_ms == 2000
    assert found.speedup == 2.0
    assert [(one.call, one.eager_ms, one.pairs) for one in found.sets] == [
        (1, 1000.0, 3),
        (3, 3000.0, 3),
    ]
    assert found.compile_seconds == 7.0
