"""Two runs of a call whose rounds are as noisy as real ones rank its regions the same, name no
regression, and find one that is planted.

The call is that of the 4-layer GPT on two processors with other programs on them: small operations
deviate by a tenth, products by some percent; one round in three is disturbed, by part of its time
or by a slice of the scheduler's; and all rounds of one process lie off by some percent more.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from compiler.measure import same_calls
from compiler.measure.account import difference, usual
from compiler.trace.records import Region
from viewers.summary.profile.ranking import ranks

ROUNDS = 100
PAIRS = 40
TOP = 5


@dataclass(frozen=True)
class Line:
    """A region of each of `layers` layers; µs of one, on either side."""

    name: str
    eager: float
    compiled: float
    layers: int = 4
    deviates: float = 0.08
    same: bool = False


CALL = (
    Line("arange", 15.9, 0.0, 1),
    Line("embedding + add + layer norm", 85.5, 25.0, 1),
    Line("linear 22", 492.0, 492.0, deviates=0.015, same=True),
    Line("split", 8.9, 0.0),
    Line("view + transpose", 5.8, 0.0),
    Line("attention", 274.0, 274.0, deviates=0.02, same=True),
    Line("transpose + view", 1.8, 0.0),
    Line("linear 25", 168.0, 168.0, deviates=0.02, same=True),
    Line("add + layer norm", 25.3, 17.5, 3),
    Line("linear 26", 645.0, 645.0, deviates=0.015, same=True),
    Line("gelu", 67.0, 44.0),
    Line("linear 26 down", 650.0, 650.0, deviates=0.015, same=True),
    Line("linear 43", 657.0, 657.0, 1, deviates=0.015, same=True),
)
PROCESS = 0.007
"""How far a side of a region lies off in a process: standard deviation, as a share of it. The same
products on both sides differed by -0.9% to -4.1%, with a deviation of 1%, in two processes."""
LEAST = 100.0
"""µs of a row in which a tenth is found."""


def rounds(seconds: float, deviates: float, chance: random.Random) -> list[float]:
    off = 1 + chance.gauss(0, PROCESS)
    found = []
    for _ in range(ROUNDS):
        one = seconds * off * (1 + abs(chance.gauss(0, deviates)))
        if seconds and chance.random() < 0.3:
            one += seconds * chance.expovariate(2) + (3e-3 if chance.random() < 0.1 else 0)
        found.append(one)
    return found


def measured(call: tuple[Line, ...], chance: random.Random) -> list[tuple[str, float, float, bool]]:
    """(name, difference, noise, whether it is lost or won) of each row, in program order."""
    rows = []
    for one in call:
        regions = []
        for number in range(one.layers):
            before = rounds(one.eager / 1e6, one.deviates, chance)
            after = rounds(one.compiled / 1e6, one.deviates, chance)
            gained, noise = difference(before, after)
            if one.same:
                noise = max(noise, same_calls.least_noise(usual(before).median, contended=False))
            regions.append(
                Region(id=f"r{number}", call=1, label="", difference=gained, noise=noise)
            )
        gained, noise = (sum(getattr(r, n) for r in regions) for n in ("difference", "noise"))
        counts = abs(gained) > noise or not one.compiled
        rows.append((one.name, gained, noise, counts))
    return rows


def top(rows: list[tuple[str, float, float, bool]]) -> list[str]:
    """As printed: by rank, equals in the order of the program."""
    counted = [row for row in rows if row[3]]
    found = ranks([(gained, noise) for _, gained, noise, _ in counted])
    order = sorted(range(len(counted)), key=lambda at: (found[at], at))
    return [counted[at][0] for at in order][:TOP]


def test_two_runs_have_the_same_top_five_and_no_false_regression() -> None:
    chance = random.Random(5)
    pairs = [(measured(CALL, chance), measured(CALL, chance)) for _ in range(PAIRS)]
    same = sum(top(one) == top(other) for one, other in pairs)
    assert same >= 0.95 * PAIRS
    lost = [
        name for pair in pairs for rows in pair for name, gained, _, so in rows if so and gained > 0
    ]
    assert lost == []


@pytest.mark.parametrize(
    "name", [one.name for one in CALL if one.compiled and one.eager * one.layers >= LEAST]
)
def test_a_slow_down_of_a_tenth_is_found(name: str) -> None:
    """Of what is as fast as eager otherwise."""
    chance = random.Random(name)
    call = tuple(
        Line(one.name, one.eager, one.eager * 1.1, one.layers, one.deviates, one.same)
        for one in CALL
        if one.name == name
    )
    for _ in range(10):
        ((_, gained, noise, counts),) = measured(call, chance)
        assert counts, (gained, noise)
        assert gained == pytest.approx(0.1 * call[0].eager * call[0].layers / 1e6, rel=0.6)
