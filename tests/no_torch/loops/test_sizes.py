from __future__ import annotations

import pytest

from tcw.compiler.loops.sizes import Size, add, divide, multiply, symbol

S, T = symbol("s0"), symbol("s1")


@pytest.mark.parametrize(
    "a", [12, S, multiply(3, S), add(multiply(4, S), 6), multiply(S, T)], ids=str
)
@pytest.mark.parametrize("b", [3, S, add(S, 2), multiply(2, T)], ids=str)
def test_a_product_divided_by_a_factor_is_the_other(a: Size, b: Size) -> None:
    assert divide(multiply(a, b), b) == a


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (7, 2),
        (7, 0),
        (multiply(3, S), 2),
        (add(multiply(4, S), 3), 2),
        (multiply(3, S), multiply(2, S)),
        (S, T),
        (add(S, 1), S),
        (S, 0),
    ],
    ids=str,
)
def test_a_division_that_is_not_exact_has_no_result(a: Size, b: Size) -> None:
    assert divide(a, b) is None
