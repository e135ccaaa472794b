"""Accounts from readings of rounds: their lines and remainder."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.measure.account.accounts import account, less, line, summed

SECONDS = st.floats(min_value=1e-7, max_value=1.0)


@given(st.lists(st.lists(SECONDS, min_size=5, max_size=5), max_size=6))
def test_lines_and_remainder_are_the_measured_call(parts: list[list[float]]) -> None:
    measured = [1.0, 1.1, 0.9, 1.0, 1.0]
    lines = [line(f"line {number}", rounds) for number, rounds in enumerate(parts)]
    made = account("compiled", 1, "", measured, lines)
    total = sum(one.time.median for one in made.lines) + made.remainder
    assert total == pytest.approx(made.measured.median)


def test_a_line_is_summed_up_round_by_round() -> None:
    """Each of two steps is disturbed once, the call twice: its median is not the sum of the steps'
    medians."""
    steps = [[1.0, 1.0, 9.0], [1.0, 9.0, 1.0]]
    assert median(summed(steps, 3)) == 10.0
    assert sum(median(step) for step in steps) == 2.0


def test_what_is_left_is_never_below_nothing() -> None:
    assert less([3.0, 1.0], [1.0, 2.0], [1.0, 0.5]) == [1.0, 0.0]


def test_a_line_without_time_is_left_out() -> None:
    made = account("eager", 1, "", [1.0] * 3, [line("operations", [1.0] * 3), line("x", [0.0] * 3)])
    assert [one.name for one in made.lines] == ["operations"]
