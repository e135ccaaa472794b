"""Two texts as the lines that differ, with a few around them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

CONTEXT = 2
"""Lines shown before and after a change."""
LONG = 3000
"""Number of lines from which frequent lines are not matched: that would take seconds."""

Sign = Literal[" ", "-", "+"]


@dataclass(frozen=True)
class DiffLine:
    sign: Sign
    """`-`: only before; `+`: only after."""
    before: int
    """Its line before, from 1; 0 for a line that was added."""
    after: int
    text: str


@dataclass(frozen=True)
class Hunk:
    """Adjacent changed lines."""

    before: tuple[int, int]
    """First line and number of lines."""
    after: tuple[int, int]
    lines: tuple[DiffLine, ...]

    @property
    def head(self) -> str:
        """`-14,6 +14,4`."""
        return f"-{self.before[0]},{self.before[1]} +{self.after[0]},{self.after[1]}"


@dataclass(frozen=True)
class TextDiff:
    hunks: tuple[Hunk, ...]
    added: int
    removed: int


def diff_lines(before: list[str], after: list[str], context: int = CONTEXT) -> TextDiff:
    """The line diff of two texts. Indentation does not count: a loop that moved into another one is
    the same loop."""
    matcher = SequenceMatcher(
        None,
        [line.strip() for line in before],
        [line.strip() for line in after],
        autojunk=max(len(before), len(after)) > LONG,
    )
    hunks = []
    added = removed = 0
    for group in matcher.get_grouped_opcodes(context):
        lines: list[DiffLine] = []
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += [
                    DiffLine(" ", i + 1, j + 1, after[j])
                    for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
                ]
                continue
            lines += [DiffLine("-", i + 1, 0, before[i]) for i in range(i1, i2)]
            lines += [DiffLine("+", 0, j + 1, after[j]) for j in range(j1, j2)]
            removed += i2 - i1
            added += j2 - j1
        first, last = group[0], group[-1]
        hunks.append(
            Hunk(
                (first[1] + (last[2] > first[1]), last[2] - first[1]),
                (first[3] + (last[4] > first[3]), last[4] - first[3]),
                tuple(lines),
            )
        )
    return TextDiff(tuple(hunks), added, removed)


MOST_PAIRS = 4_000_000
"""Elements of two sequences multiplied, beyond which only a common start and end are matched:
`SequenceMatcher` takes quadratic time where much repeats."""


def matches(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Positions of equal elements, rising on both sides: a common start and end, and between them
    what `SequenceMatcher` finds."""
    least = min(len(first), len(second))
    start = next((at for at in range(least) if first[at] != second[at]), least)
    end = next(
        (at for at in range(least - start) if first[-1 - at] != second[-1 - at]), least - start
    )
    found = [(at, at) for at in range(start)]
    one, other = first[start : len(first) - end], second[start : len(second) - end]
    if len(one) * len(other) <= MOST_PAIRS:
        for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
            found += [(start + block.a + k, start + block.b + k) for k in range(block.size)]
    found += [(len(first) - end + at, len(second) - end + at) for at in range(end)]
    return found


def gaps(found: Sequence[tuple[int, int]], first: int, second: int) -> list[tuple[range, range]]:
    """What `matches` left of two sequences of these lengths; either range may be empty."""
    ends = [(-1, -1), *found, (first, second)]
    pairs = [(range(i1 + 1, i2), range(j1 + 1, j2)) for (i1, j1), (i2, j2) in pairwise(ends)]
    return [pair for pair in pairs if pair[0] or pair[1]]
