"""The loop of every timing: its order, its end, and its callbacks."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from tcw.compiler.measure.rounds.rounds import FEWEST, RoundsPlan, in_rounds, turned, warm_up


def made(plan: RoundsPlan, runs: str = "ab", **options: object) -> list[str]:
    """The runs of each turn."""
    turns: list[str] = []

    def make(run: str, turn: int, count: int) -> None:
        assert not gc.isenabled()
        turns.extend("" for _ in range(turn + 1 - len(turns)))
        turns[turn] += run * count

    in_rounds([list(runs)], make, plan, **options)  # type: ignore[arg-type]
    assert gc.isenabled()
    return turns


def test_the_order_of_two_runs_turns() -> None:
    assert made(RoundsPlan(rounds=4)) == ["ab", "ba", "ba", "ab"]


@pytest.mark.parametrize("runs", ["ab", "abc", "abcde"])
def test_each_run_comes_first_equally_often(runs: str) -> None:
    orders = [turned(runs, turn) for turn in range(2 * len(runs))]
    assert all(sorted(order) == list(runs) for order in orders)
    assert set(Counter(order[0] for order in orders).values()) == {2}
    assert set(Counter(order[-1] for order in orders).values()) == {2}


def test_runs_that_are_compared_stay_together() -> None:
    order: list[str] = []
    in_rounds([["a", "b"], ["c", "d"]], lambda run, *_: order.append(run), RoundsPlan(rounds=2))
    assert "".join(order) == "abcd" + "badc"


def test_the_budget_ends_the_rounds_after_the_least_number() -> None:
    assert len(made(RoundsPlan(rounds=50, seconds=0.0, least=10))) == 10
    assert len(made(RoundsPlan(rounds=5, seconds=0.0, least=10))) == 5
    assert len(made(RoundsPlan(rounds=50, seconds=0.0, least=10, patience=0.0))) == FEWEST


def test_disturbed_rounds_are_made_up_for_within_limits() -> None:
    plan = RoundsPlan(rounds=10, extension=4)
    assert len(made(plan)) == 10
    assert len(made(plan, undisturbed=lambda: 0)) == 40


def test_several_rounds_are_made_in_one_turn_and_told() -> None:
    told: list[int] = []
    turns = made(RoundsPlan(rounds=8), in_a_row=lambda: 3, progress=told.append)
    assert turns == ["aaabbb", "bbbaaa", "bbaa"]
    assert told == [0, 3, 6]


def test_the_last_result_of_each_warm_up_is_returned() -> None:
    seen: list[str] = []

    def make(run: str) -> str:
        seen.append(run)
        return f"{run}{len(seen)}"

    assert warm_up("ab", make) == ["a3", "b4"]
    assert warm_up("c", make, times=1) == ["c5"]
