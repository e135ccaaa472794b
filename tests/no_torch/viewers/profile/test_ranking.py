"""The order of differences: by size, and what cannot be told apart shares a rank."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tcw.viewers.summary.profile.rows import TimeDifference, standings

SECONDS = st.floats(-1.0, 1.0, allow_nan=False)
FOUND = st.lists(st.builds(TimeDifference, SECONDS, st.floats(0.0, 0.2)), max_size=12)


def of(*found: tuple[float, float]) -> list[tuple[int, int]]:
    """(position, rank) of each."""
    made = standings([TimeDifference(*one) for one in found])
    return [(one.position, one.rank) for one in made]


def test_what_is_clearly_less_comes_after() -> None:
    assert of((-16, 1), (92, 1), (-36, 1)) == [(3, 3), (1, 1), (2, 2)]


def test_equals_share_a_rank_and_the_next_counts_them_all() -> None:
    assert of((-21, 2), (92, 1), (-21.6, 2), (-5, 0.1)) == [(3, 2), (1, 1), (2, 2), (4, 4)]


def test_what_is_inside_the_noise_of_both_is_equal() -> None:
    assert of((-86, 60), (-63, 5), (-20, 2)) == [(1, 1), (2, 1), (3, 3)]
    assert of((-63, 5), (-86, 60), (-20, 2)) == [(2, 1), (1, 1), (3, 3)]
    assert of((-60, 11), (-92, 9), (-20, 2)) == [(2, 2), (1, 1), (3, 3)]


@given(FOUND)
def test_the_order_is_that_of_the_sizes(found: list[TimeDifference]) -> None:
    made = standings(found)
    assert sorted(one.position for one in made) == list(range(1, len(found) + 1))
    ordered = sorted(zip(made, found, strict=True), key=lambda both: both[0].position)
    sizes = [abs(one.seconds) for _, one in ordered]
    assert sizes == sorted(sizes, reverse=True)


@given(FOUND)
def test_a_rank_starts_with_what_is_surely_smaller(found: list[TimeDifference]) -> None:
    made = standings(found)
    first = {one.position: one_found for one, one_found in zip(made, found, strict=True)}
    for one, own in zip(made, found, strict=True):
        leads = first[one.rank]
        apart = abs(leads.seconds) - abs(own.seconds)
        assert apart <= math.hypot(leads.noise, own.noise)
        before = [other for other in made if other.position < one.rank]
        if one.position == one.rank and before:
            last = first[max(other.rank for other in before)]
            assert abs(last.seconds) - abs(own.seconds) > math.hypot(last.noise, own.noise)


@given(FOUND)
def test_a_rank_counts_all_that_stand_before(found: list[TimeDifference]) -> None:
    made = standings(found)
    assert all(one.rank == 1 + sum(other.rank < one.rank for other in made) for one in made)
