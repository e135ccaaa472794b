"""The colours of the dark and the light theme, for the panes, the command line and drawings.

Foreground hue is meaning, background hue is identity: no fill is red or amber. Every meaning has a
glyph or a word as well. The meanings have at least 4.5:1 contrast on their background and stay
apart in simulated protan, deutan and tritan sight; text has at least 7:1 on each fill.
"""

from __future__ import annotations

from typing import Literal, get_args

from tcw.viewers.kit.spans import Role

Fill = Literal["fill-0", "fill-1", "fill-2", "fill-3", "fill-4", "fill-5", "fill-call"]
FILLS: tuple[Fill, ...] = get_args(Fill)
HUES = len(FILLS) - 1

DARK = {
    "background": "#14161a", "raised": "#1a1d22", "rule": "#2e333b", "text": "#d6dae0",
    "dim": "#8b93a0", "faint": "#68707d", "accent": "#8ab4f8", "selected": "#27467a",
    "exact": "#1e3256", "inferred": "#1a2436", "good": "#33d6a6", "bad": "#e8613c",
    "warn": "#ffd04a", "hot": "#cc6bff", "bad-range": "#4a2417", "keyword": "#9aa7d0",
    "string": "#a9b88c", "number": "#c9a98a", "comment": "#6b7480",
    "added": "#153d31", "removed": "#4a2417",
    "fill-0": "#23415c", "fill-1": "#3b3c1d", "fill-2": "#1f4840", "fill-3": "#4a2d4c",
    "fill-4": "#2f3272", "fill-5": "#46403a", "fill-call": "#23272e", "dim-on-fill": "#a8b0bd",
}  # fmt: skip
LIGHT = {
    "background": "#fbfbf9", "raised": "#f1f1ee", "rule": "#d4d4cf", "text": "#24272c",
    "dim": "#5c636d", "faint": "#868d96", "accent": "#1c46a0", "selected": "#c3d7fb",
    "exact": "#d8e5fc", "inferred": "#edf2fb", "good": "#0a7f6d", "bad": "#8f1f0c",
    "warn": "#8a7000", "hot": "#b03bd0", "bad-range": "#fbdccb", "keyword": "#4a4f9c",
    "string": "#55701c", "number": "#8a5a1c", "comment": "#8b9098",
    "added": "#cdebdd", "removed": "#fbdccb",
    "fill-0": "#cfe2f3", "fill-1": "#e3e4bd", "fill-2": "#c4e6dc", "fill-3": "#ecd6ee",
    "fill-4": "#d5d6f7", "fill-5": "#e5ddd2", "fill-call": "#e9eaec", "dim-on-fill": "#4c535d",
}  # fmt: skip

FOREGROUND: dict[Role, str] = {
    "text": "text", "dim": "dim", "faint": "faint", "strong": "text", "accent": "accent",
    "title": "accent", "good": "good", "bad": "bad", "warn": "warn", "hot": "hot",
    "keyword": "keyword", "string": "string", "number": "number", "comment": "comment",
    "bad-range": "text", "here": "text", "hit": "background", "shared": "accent", "bar": "dim",
    "bar-hot": "hot", "bar-warn": "warn", "bar-accent": "accent", "bar-good": "good",
    "bar-bad": "bad", "key": "accent",
    **dict.fromkeys(FILLS, "text"),
    "turn": "background", "button": "text", "off": "faint",
}  # fmt: skip
"""A role's colour, by name."""
BOLD: frozenset[Role] = frozenset({"strong", "title", "shared", "key", "turn", "button", "here"})

TONES: dict[str, Role] = {
    "won": "good", "good": "good", "lost": "bad", "failed": "bad", "bad": "bad",
    "neutral": "strong",
}  # fmt: skip
"""The role of a verdict's headline, by its tone."""


def fill_of(hue: int) -> Fill:
    """The fill of a group, by its number; -1 for library calls and nodes in no group. Colours
    repeat after `HUES` groups: the words in the blocks tell them apart."""
    return FILLS[hue % HUES] if hue >= 0 else "fill-call"
