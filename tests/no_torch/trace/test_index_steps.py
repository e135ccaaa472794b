"""How far apart neighbouring iterations of a recorded loop read."""

from __future__ import annotations

import pytest

from tcw.compiler.trace.index_steps import at_place, step_along


@pytest.mark.parametrize(
    ("index", "step"),
    [
        ("4096*p0 + p1", 1),
        ("4096*p0 + 2*p1 + 7", 2),
        ("p0 + 64*p1", 64),
        ("p0", 0),
        ("-p1 + 100", -1),
        ("3*((p1//16))", 0),
        ("ModularIndexing(p1, 1, 8)", 1),
        ("p1*p1", None),
        ("(p1 % 2)", None),
        ("s0*p1", None),
        ("", None),
        ("__import__('os')", None),
        ("p1(2)", None),
        ("1" * 400, None),
        ("5if p1 else 2", None),
    ],
)
def test_the_step_of_the_innermost_loop(index: str, step: int | None) -> None:
    assert step_along(index, "p1", ("p0", "p1")) == step


def test_indexes_of_one_place_are_equal() -> None:
    at = {"p0": 1009, "p1": 10007}
    assert at_place("(4096*p0 + p1)", at) == at_place("4096*p0 + p1", at)
    assert at_place("torch.float32", at) == "torch.float32"
