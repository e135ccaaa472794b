"""Differences, ratios and their noise from readings of rounds, plain and disturbed."""

from __future__ import annotations

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.measure.rounds.noise import (
    difference,
    noise_of,
    noise_of_medians,
    ratio,
    spread,
    timed,
)


def test_a_figure_is_a_median_with_its_spread() -> None:
    found = timed([1.0, 1.0, 1.2, 5.0, 1.0])
    assert (found.median, found.runs) == (1.0, 5)
    assert found.spread == pytest.approx(0.01)


def disturbed(seconds: float, rounds: int, random_: random.Random) -> list[float]:
    """A step's readings on a busy machine: a little slower at times, and much slower in some."""
    return [
        seconds * random_.uniform(1.0, 1.05) + (0.008 if random_.random() < 0.2 else 0.0)
        for _ in range(rounds)
    ]


def test_a_slow_down_of_a_tenth_is_found_and_none_is_made_up() -> None:
    """One step of a call of 10 ms takes 1 ms more, and another takes what it took before. One in a
    thousand of the latter may be beyond the noise."""
    made_up = 0
    for seed in range(2000):
        chance = random.Random(seed)
        eager, same = (disturbed(2e-3, 30, chance) for _ in range(2))
        slower = disturbed(3e-3, 30, chance)
        lost, noise = difference(eager, slower, independent=True)
        assert lost > noise
        lost, noise = difference(eager, same, independent=True)
        made_up += lost > noise
    assert made_up <= 2


def test_a_drift_that_both_sides_share_is_no_noise() -> None:
    eager = [1.0 + number for number in range(9)]
    gained, noise = difference(eager, [seconds - 0.5 for seconds in eager])
    assert gained == pytest.approx(-0.5)
    assert noise == pytest.approx(0.05)


def test_a_ratio_is_found_as_surely() -> None:
    chance = random.Random(1)
    speedup, noise = ratio(disturbed(3e-3, 30, chance), disturbed(2e-3, 30, chance))
    assert speedup == pytest.approx(1.5, rel=0.05)
    assert 0.01 <= noise < 0.3


def test_what_eager_does_not_do_is_weighed_by_itself() -> None:
    lost, noise = difference([0.0] * 3, [1.0, 1.0, 1.0])
    assert (lost, noise) == (1.0, 0.01)


def contended(seconds: float, rounds: int, chance: random.Random) -> list[float]:
    """Two rounds in three wait for a processor, for as long as others please."""
    return [
        seconds * chance.uniform(1.0, 1.05)
        + (chance.uniform(0.2, 20.0) * seconds if chance.random() < 0.66 else 0.0)
        for _ in range(rounds)
    ]


def test_what_others_slowed_down_is_no_loss() -> None:
    """The same step on both sides; on one of them others were busier. Noise is no bound: one in a
    thousand may be beyond it."""
    lost = 0
    for seed in range(2000):
        chance = random.Random(seed)
        eager, once, twice, thrice = (
            series(1e-3, 40, chance) for series in (disturbed, contended, contended, contended)
        )
        for one, other in ((eager, once), (twice, thrice)):
            loss, noise = difference(one, other)
            lost += loss > noise
    assert lost <= 2


def test_noise_goes_down_with_the_rounds() -> None:
    chance = random.Random(4)
    noises = []
    for rounds in (9, 36, 144):
        eager, compiled = (disturbed(1e-3, rounds, chance) for _ in range(2))
        noises.append(difference(eager, compiled, independent=True)[1])
    assert noises[0] > noises[1] > noises[2]


@given(st.integers(1, 200))
def test_beside_other_programs_more_rounds_are_no_surer(rounds: int) -> None:
    alone = noise_of(1.0, rounds, 0.0, independent=True)
    assert alone == pytest.approx(9 / rounds**0.5)
    assert noise_of(1.0, rounds, 0.0, independent=False) == max(alone, 3.0)
    assert noise_of(0.0, rounds, 5.0, independent=True) == pytest.approx(0.05)


@given(st.integers(0, 10_000))
def test_chance_is_within_the_noise_of_a_remainder_and_a_twentieth_is_not(seed: int) -> None:
    chance = random.Random(seed)
    plain, probed, slower = (
        [median_ * chance.gauss(1.0, 0.02) for _ in range(60)] for median_ in (1.0, 1.0, 1.05)
    )
    noise = noise_of_medians(plain, probed, 60)
    assert abs(median(plain) - median(probed)) <= 1.5 * noise
    assert median(slower) - median(plain) > noise


def test_values_of_one_round_count_as_one() -> None:
    values = [1.0, 1.1, 0.9, 1.05, 1.0, 0.95, 1.0, 1.02]
    noises = [noise_of_medians(values, values, n) for n in (2, 8)]
    assert noises[0] == pytest.approx(2 * noises[1])
    assert noises[1] == pytest.approx((2 * 81 / 8) ** 0.5 * spread(values))
