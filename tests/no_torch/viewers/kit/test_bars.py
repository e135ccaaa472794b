from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tcw.viewers.kit.figures import Bars
from tcw.viewers.plain import fit_encoding

SECONDS = st.floats(0, 1e3)


@given(SECONDS, SECONDS, st.integers(12, 200))
def test_both_sides_fit_and_the_longest_fills_its_side(lost: float, won: float, cells: int) -> None:
    bars = Bars.for_values(lost, won, cells, 6)
    assert bars.left + bars.right == cells
    assert min(bars.left, bars.right) >= 6
    for value in (lost, lost / 3):
        assert len(bars.lost(value)) == bars.left
    for value in (won, won / 3):
        assert 1 <= len(bars.won(value)) <= bars.right


def test_every_bar_has_an_ascii_one() -> None:
    bars = Bars.for_values(10.0, 30.0, 40, 6)
    for eighth in range(1, 9):
        text = bars.lost(eighth / 8) + bars.won(eighth / 8)
        assert len(fit_encoding(text, "ascii")) == len(text)


def test_a_bar_is_as_long_as_its_value() -> None:
    bars = Bars.for_values(10.0, 30.0, 40, 6)
    assert (bars.left, bars.right) == (10, 30)
    assert bars.lost(5.0) == " " * 5 + "█" * 5
    assert bars.won(15.0) == "█" * 15
    assert bars.won(0.1) == "▏"
