"""Times of one table in one unit."""

from __future__ import annotations

from tcw.viewers.kit.figures import unit_for


def test_a_change_that_rounds_to_nothing_has_no_sign() -> None:
    unit = unit_for(1e-3)
    assert [unit.signed(one) for one in (1e-9, -1e-9, 0.0)] == ["0.0"] * 3
    assert [unit.signed(one) for one in (8.037e-4, -6.26e-5)] == ["+803.7", "-62.6"]
