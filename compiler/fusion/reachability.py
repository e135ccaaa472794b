"""Reachability among groups, as bitsets that merges update incrementally."""

from __future__ import annotations

from collections.abc import Sequence


class Reachability:
    """Ancestors and descendants of each node. A group is identified by its initial node."""

    def __init__(self, before: Sequence[Sequence[int]]) -> None:
        count = len(before)
        self.ancestors = [0] * count
        self.descendants = [0] * count
        self.held = [1 << node for node in range(count)]
        """The nodes of a group, stored at its initial node."""
        for node in range(count):
            reached = 0
            for earlier in before[node]:
                reached |= self.ancestors[earlier] | 1 << earlier
            self.ancestors[node] = reached
        for node in range(count - 1, -1, -1):
            reached = self.descendants[node] | 1 << node
            for earlier in before[node]:
                self.descendants[earlier] |= reached

    def reaches(self, first: int, second: int) -> bool:
        """Whether a node of the second group depends on a node of the first."""
        return bool(self.descendants[first] & self.held[second])

    def between(self, first: int, second: int) -> int:
        """Units outside both groups that depend on one of them and that the other depends on."""
        up, down = self.ancestors, self.descendants
        both = self.held[first] | self.held[second]
        return (up[second] & down[first] | up[first] & down[second]) & ~both

    def merge(self, first: int, second: int) -> None:
        """Merge the second group into the first, updating the nodes that reached only one."""
        up, down = self.ancestors, self.descendants
        up_first, up_second, down_first, down_second = (
            up[first],
            up[second],
            down[first],
            down[second],
        )
        self.held[first] |= self.held[second]
        inside = self.held[first]
        for learners, table, news in (
            (up_first & ~up_second, down, down_second | inside),
            (up_second & ~up_first, down, down_first | inside),
            (down_first & ~down_second, up, up_second | inside),
            (down_second & ~down_first, up, up_first | inside),
        ):
            left = learners & ~inside
            while left:
                lowest = left & -left
                table[lowest.bit_length() - 1] |= news
                left ^= lowest
        up[first] = (up_first | up_second) & ~inside
        down[first] = (down_first | down_second) & ~inside
