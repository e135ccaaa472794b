"""Reachability after merges, against a search of the merged graph."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from tcw.compiler.fusion.reachability import Reachability


def depends(before: list[list[int]], group: list[int], first: int, second: int) -> bool:
    """Whether a path of the merged graph leads from group `first` to group `second`."""
    waiting, seen = [second], {second}
    while waiting:
        inside = waiting.pop()
        for unit, earlier in enumerate(before):
            if group[unit] != inside:
                continue
            for other in (group[one] for one in earlier):
                if other == first and other != inside:
                    return True
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
    return False


@pytest.mark.parametrize("seed", range(40))
def test_merged_groups_reach_what_their_units_reach(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(4, 12)
    before = [
        sorted(chance.sample(range(unit), chance.randrange(min(unit, 3) + 1)))
        for unit in range(count)
    ]
    reach = Reachability(before)
    group = list(range(count))
    while True:
        left = sorted(set(group))
        after = {a: {b for b in left if depends(before, group, a, b)} for a in left}
        for one, two in permutations(left, 2):
            assert reach.reaches(one, two) == (two in after[one])
            amid = {a for a in left if a in after[one] and two in after[a]}
            amid |= {a for a in left if a in after[two] and one in after[a]}
            units = [u for u in range(count) if group[u] in amid - {one, two}]
            assert reach.between(one, two) == sum(1 << unit for unit in units)
        pairs = [pair for pair in permutations(left, 2) if not reach.between(*pair)]
        if not pairs:
            return
        one, two = chance.choice(pairs)
        reach.merge(one, two)
        group = [one if own == two else own for own in group]
