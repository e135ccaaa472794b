"""With any override, from a file or given when asked, the output equals eager's, a veto holds, and
a choice means the same as that override in a file."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import cache

import pytest

from tcw.compiler.control.gate import Gate
from tcw.compiler.protocol.decision import APART, Decision, Ruling, decision_id
from tests.cpu.engine.overruled import PROGRAMS, run

COMBINATIONS = int(os.environ.get("TCW_OVERRULED", "8"))
ANSWERED = 4


@cache
def decisions(name: str) -> tuple[Decision, ...]:
    """All decisions without overrides, each once."""
    seen: dict[str, Decision] = {}

    def watch(decided: Ruling) -> None:
        seen[decided.decision.id] = decided.decision

    ran = run(name, Gate(watch=watch))
    ran.check()
    return tuple(seen.values())


def some(name: str, number: int) -> dict[str, str]:
    """Random overrides: legal and illegal choices of every kind, vetoes on any two nodes."""
    chance = random.Random(f"{name} {number}")
    found = decisions(name)
    chosen = {}
    for decision in chance.sample(found, min(len(found), chance.randint(1, 12))):
        chosen[decision.id] = chance.choice(decision.choices)
    nodes: dict[str, set[str]] = {}
    for decision in found:
        if decision.kind in ("fuse", "inline"):
            nodes.setdefault(decision.graph, set()).update(decision.names)
    for graph in sorted(nodes):
        for _ in range(chance.randint(0, 2)):
            if len(nodes[graph]) > 1:
                pair = chance.sample(sorted(nodes[graph]), 2)
                chosen[decision_id(graph, "fuse", *pair)] = APART
    return chosen


def check(number: int) -> None:
    name = sorted(PROGRAMS)[number % len(PROGRAMS)]
    run(name, Gate(some(name, number))).check()


PICKED = 92
"""A veto on two values that are both recomputed where an index picks from their result."""


@pytest.mark.parametrize("number", [*range(COMBINATIONS), PICKED])
def test_what_is_overruled_still_computes_the_same(number: int) -> None:
    check(number)


@pytest.mark.long
@pytest.mark.parametrize("number", range(COMBINATIONS, 200))
def test_many_combinations(number: int) -> None:
    check(number)


def test_a_veto_keeps_apart_what_one_picked_element_would_need() -> None:
    """`gather(sub)` recomputes the elements that it picks: sub, and everything before it."""
    veto = "tcw/0/0/forward/fuse/sub+cos"
    run("loss", Gate({veto: APART})).check()


def policy(number: int) -> Callable[[Decision], str]:
    """A user who chooses at random."""
    chance = random.Random(number)

    def ask(decision: Decision) -> str:
        if decision.detail is not None:
            detail = decision.detail()
            assert detail.means
        if decision.kind == "save" or chance.random() < 0.5:
            return ""
        return chance.choice(decision.choices)

    return ask


@pytest.mark.parametrize("number", range(ANSWERED))
def test_an_answer_means_what_a_file_means(number: int) -> None:
    name = sorted(PROGRAMS)[number % len(PROGRAMS)]
    asked = run(name, Gate(ask=policy(number)))
    asked.check()
    assert not asked.gate.refused()
    again = run(name, Gate(dict(asked.gate.overrides)))
    assert again.units == asked.units
    assert not list(again.gate.unknown())
