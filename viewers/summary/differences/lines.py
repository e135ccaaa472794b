"""Two texts as the lines that differ, with a few around them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
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
