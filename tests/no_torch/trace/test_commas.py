"""Splitting at the commas that are in no bracket or string."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.commas import split_at_commas


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x=1, y=[2, 3]", ["x=1", "y=[2, 3]"]),
        ("f(a, (b, c)), {1: 2, 3: 4}", ["f(a, (b, c))", "{1: 2, 3: 4}"]),
        ("'a, b', \"(,\", c", ["'a, b'", '"(,"', "c"]),
        ("a, , b,", ["a", "b"]),
        ("", []),
        ("a), b", ["a)", "b"]),
    ],
)
def test_parts(text: str, parts: list[str]) -> None:
    assert split_at_commas(text) == parts
