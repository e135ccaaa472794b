"""Sizes as C text: they may follow a division."""

from __future__ import annotations

import pytest

from tcw.compiler.loops.sizes import Size, add, c_expression, multiply, symbol

S = symbol("s0")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (64, "64"),
        (S, "s0"),
        (multiply(64, S), "(64*s0)"),
        (multiply(S, symbol("s1")), "(s0*s1)"),
        (add(S, 1), "(s0 + 1)"),
        (1 << 40, "1099511627776L"),
    ],
)
def test_text(size: Size, text: str) -> None:
    assert c_expression(size) == text


def test_a_size_is_a_divisor() -> None:
    divided = f"unit / {c_expression(multiply(64, S))}".replace("/", "//")
    assert eval(divided, {"unit": 1000, "s0": 3}) == 1000 // 192
