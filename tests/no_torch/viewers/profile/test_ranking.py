"""Ranks: what cannot be told apart shares one, and keeps the order of the program."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from viewers.summary.profile.ranking import CLOSE, ranks

SECONDS = st.floats(-1.0, 1.0, allow_nan=False)
FOUND = st.lists(st.tuples(SECONDS, st.floats(0.0, 0.2)), max_size=12)


def test_what_is_clearly_less_comes_after() -> None:
    assert ranks([(-16.0, 1.0), (92.0, 1.0), (-36.0, 1.0)]) == [3, 1, 2]


def test_equals_share_a_rank_and_the_next_counts_them_all() -> None:
    assert ranks([(-21.0, 0.2), (92.0, 1.0), (-21.6, 0.2), (-5.0, 0.1)]) == [2, 1, 2, 4]


def test_what_is_inside_the_noise_of_both_is_equal() -> None:
    assert ranks([(-92.0, 49.0), (-60.0, 11.0), (-20.0, 2.0)]) == [1, 1, 3]
    assert ranks([(-92.0, 9.0), (-60.0, 11.0), (-20.0, 2.0)]) == [1, 2, 3]


def test_a_chain_of_small_steps_is_no_tie_of_its_ends() -> None:
    found = [(100.0, 0.0), (90.0, 0.0), (81.0, 0.0), (73.0, 0.0)]
    assert ranks(found) == [1, 1, 1, 4]


@given(FOUND)
def test_the_first_of_a_rank_is_the_largest_that_was_left(found: list[tuple[float, float]]) -> None:
    given_ranks = ranks(found)
    for rank in set(given_ranks):
        assert rank == 1 + sum(one < rank for one in given_ranks)
        largest = max(abs(found[at][0]) for at, one in enumerate(given_ranks) if one == rank)
        after = [abs(found[at][0]) for at, one in enumerate(given_ranks) if one > rank]
        assert all(one <= largest * (1 - CLOSE) for one in after)


@given(FOUND)
def test_ranks_do_not_depend_on_the_order_of_the_program(found: list[tuple[float, float]]) -> None:
    distinct = list({abs(one): (one, noise) for one, noise in found}.values())
    there = dict(zip(distinct, ranks(distinct), strict=True))
    back = dict(zip(distinct[::-1], ranks(distinct[::-1]), strict=True))
    assert there == back
