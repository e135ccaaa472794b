"""The sketch of the nest that two would become, and the table of rules."""

from __future__ import annotations

import pytest

from tcw.compiler.inductor.fusion_overrides import sketch
from tcw.compiler.inductor.fusion_rules import (
    FORBIDDEN,
    PREFERENCES,
    RULES,
    SILENT,
    rule_of,
    why_forbidden,
)
from tests.inductor_loops import loops_in, nest_text

POINTWISE = "for p0 in 8:\n  for p1 in 4:\n    store(buf0, 4*p0 + p1, x)\n"
ROW = "for q0 in 8:\n  reduce q1 in 4:\n    max = reduction(load(buf0, 4*q0 + q1))\n"
FLAT = "for p0 in 32:\n  exp = load(buf0, p0)\n"


def drawn(*texts: str) -> str:
    """The sketch of these nests."""
    return nest_text(sketch([loops_in(text) for text in texts]))


def test_a_row_and_its_reader_share_the_outer_loop() -> None:
    assert drawn(ROW, POINTWISE) == (
        "for q0 in 8:\n"
        "  reduce q1 in 4:\n"
        "    max = reduction(load(buf0, 4*q0 + q1))\n"
        "  for p1 in 4:\n"
        "    store(buf0, 4*q0 + p1, x)\n"
    )


def test_equal_loops_become_one() -> None:
    assert drawn(POINTWISE, POINTWISE).count("for") == 2


def test_a_flat_loop_is_written_with_the_loops_of_the_other() -> None:
    assert drawn(ROW, FLAT).endswith("  for q1 in 4:\n    exp = load(buf0, (4*q0 + q1))\n")


def test_nests_with_nothing_in_common_follow_each_other() -> None:
    assert drawn("for a in 3:\n  x()\n", "for b in s0:\n  y()\n") == (
        "for a in 3:\n  x()\nfor b in s0:\n  y()\n"
    )
    assert drawn() == ""


def test_every_rule_is_a_preference_or_forbidden() -> None:
    named = {rule for rule, _ in RULES} | set(SILENT)
    assert named <= PREFERENCES.keys() | FORBIDDEN.keys()
    assert not PREFERENCES.keys() & FORBIDDEN.keys()


@pytest.mark.parametrize(
    ("reason", "may_be_forced"),
    [
        ("no shared data", True),
        ("score_fusion_memory_threshold", True),
        ("Nodes are too far away. Fusing them may increase peak memory.", True),
        ("intermediate nodes between node1 & node2", False),
        ("reduction fusion does not preserve strict sum ordering", False),
        ("template fusion does not preserve strict reduction ordering", False),
        ("words that no torch says yet", False),
    ],
)
def test_what_may_be_forced(reason: str, may_be_forced: bool) -> None:
    assert (not why_forbidden(rule_of(reason))) == may_be_forced
