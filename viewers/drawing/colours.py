"""The backgrounds of blocks: identity, never meaning, so that none is red or amber.

Text has at least 7:1 contrast on each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Fill = Literal["fill-0", "fill-1", "fill-2", "fill-3", "fill-4", "fill-5", "fill-call"]
FILLS: tuple[Fill, ...] = get_args(Fill)
HUES = len(FILLS) - 1


@dataclass(frozen=True)
class Palette:
    """Colours of a drawing."""

    fills: dict[Fill, str]
    background: str
    text: str
    dim: str
    line: str


DARK = Palette(
    dict(zip(FILLS, (
        "#23415c", "#3b3c1d", "#1f4840", "#4a2d4c", "#2f3272", "#46403a", "#23272e",
    ), strict=True)),
    "#14161a", "#d6dae0", "#a8b0bd", "#8b93a0",
)  # fmt: skip
LIGHT = Palette(
    dict(zip(FILLS, (
        "#cfe2f3", "#e3e4bd", "#c4e6dc", "#ecd6ee", "#d5d6f7", "#e5ddd2", "#e9eaec",
    ), strict=True)),
    "#fbfbf9", "#24272c", "#4c535d", "#5c636d",
)  # fmt: skip


def fill_of(hue: int) -> Fill:
    """The fill of a group's number; -1 for library calls and what is in no group. Colours come
    back after `HUES` groups: the words in the blocks tell them apart."""
    return FILLS[hue % HUES] if hue >= 0 else "fill-call"
