"""The order of differences: what is surely larger stands before, of the rest what is expected to
be."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from viewers.summary.profile.ranking import Difference, standings, surely_larger

SECONDS = st.floats(-1.0, 1.0, allow_nan=False)
FOUND = st.lists(st.builds(Difference, SECONDS, st.floats(0.0, 0.2), SECONDS), max_size=12)
CONTENDED = st.booleans()


def of(*found: tuple[float, ...], contended: bool = False) -> list[tuple[int, int]]:
    """(position, rank) of each."""
    made = standings([Difference(*one) for one in found], contended=contended)
    return [(one.position, one.rank) for one in made]


def test_what_is_clearly_less_comes_after() -> None:
    assert of((-16, 1), (92, 1), (-36, 1)) == [(3, 3), (1, 1), (2, 2)]


def test_equals_share_a_rank_and_the_next_counts_them_all() -> None:
    assert of((-21, 0.2), (92, 1), (-21.6, 0.2), (-5, 0.1)) == [(2, 2), (1, 1), (3, 2), (4, 4)]


def test_what_is_inside_the_noise_of_both_is_equal() -> None:
    assert of((-86, 60), (-63, 5), (-20, 2)) == [(1, 1), (2, 1), (3, 3)]
    assert of((-63, 5), (-86, 60), (-20, 2)) == [(1, 1), (2, 1), (3, 3)]
    assert of((-60, 11), (-92, 9), (-20, 2)) == [(2, 2), (1, 1), (3, 3)]


def test_of_equals_the_one_that_is_expected_to_be_larger_is_first() -> None:
    assert of((-60, 5, -10), (-62, 5, -8), (-58, 5, -30)) == [(2, 1), (3, 1), (1, 1)]


def test_what_is_expected_the_other_way_is_not_expected_at_all() -> None:
    assert of((-60, 5, +90), (-62, 5, -8), (+58, 5, +30)) == [(3, 1), (2, 1), (1, 1)]


def test_what_is_expected_never_stands_against_what_is_sure() -> None:
    assert of((-60, 5, -900), (-90, 5, 0)) == [(2, 2), (1, 1)]


def test_beside_other_programs_a_difference_has_to_be_three_times_another() -> None:
    found = [(-40.0, 2.0, -30.0), (-100.0, 2.0, -10.0), (-30.0, 2.0, -20.0)]
    assert of(*found) == [(2, 2), (1, 1), (3, 3)]
    assert of(*found, contended=True) == [(1, 1), (2, 1), (3, 3)]


def test_a_limit_that_is_crossed_changes_nothing_where_the_expected_order_is_the_same() -> None:
    """The same two lines, told apart in one run and not in the other."""
    one, other = (-80.0, 5.0, -50.0), (-61.0, 5.0, -40.0)
    closer = (-66.0, 5.0, -40.0)
    assert [place for place, _ in of(one, other)] == [1, 2]
    assert [place for place, _ in of(one, closer)] == [1, 2]
    assert [rank for _, rank in of(one, other)] != [rank for _, rank in of(one, closer)]


@given(FOUND, CONTENDED)
def test_nothing_stands_before_what_is_surely_larger(
    found: list[Difference], contended: bool
) -> None:
    made = standings(found, contended=contended)
    assert sorted(one.position for one in made) == list(range(1, len(found) + 1))
    for one, there in zip(found, made, strict=True):
        for other, elsewhere in zip(found, made, strict=True):
            if surely_larger(one, other, contended=contended):
                assert there.position < elsewhere.position
                assert there.rank < elsewhere.rank


@given(FOUND, CONTENDED)
def test_a_rank_counts_all_that_stand_before(found: list[Difference], contended: bool) -> None:
    made = standings(found, contended=contended)
    assert all(one.rank == 1 + sum(other.rank < one.rank for other in made) for one in made)


@given(FOUND, CONTENDED)
def test_the_order_is_that_of_the_differences_and_not_of_the_program(
    found: list[Difference], contended: bool
) -> None:
    def expected(one: Difference) -> float:
        return math.copysign(1, one.seconds) * one.expected

    distinct = list({expected(one): one for one in found}.values())
    there = dict(zip(distinct, standings(distinct, contended=contended), strict=True))
    back = dict(zip(distinct[::-1], standings(distinct[::-1], contended=contended), strict=True))
    assert there == back
