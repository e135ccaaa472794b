"""Rows to segments: clipping, padding and tints. No widget, no terminal."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment

from tcw.viewers.kit.spans import Line, clip, width_of
from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes.rows import Row
from tcw.viewers.plain import plain, spelled

_BLANKS = re.compile(r"(^\s+|\s{2,}|\s+$)")
"""Not underlined where a tint is an underline."""


def harmless(line: Line) -> Line:
    """Make control characters visible, the last check before the terminal. Panes escape the user's
    text themselves; this catches what they miss."""
    if all(words.isprintable() for words, _ in line):
        return line
    return tuple((plain(words), role) for words, role in line)


def _legible(line: Line, theme: Theme) -> Line:
    line = harmless(line)
    return tuple((spelled(words), role) for words, role in line) if theme.spells_keys else line


def paint(row: Row, width: int, left: int, theme: Theme, tint: Tint = "") -> list[Segment]:
    """A row in `width` cells, its body scrolled by `left`. `‹` and `›` mark what is cut; at least
    one blank separates the body from the words at the right."""
    gutter = clip(harmless(row.gutter), 0, width)
    right, line = _legible(row.right, theme), _legible(row.body, theme)
    room = width - width_of(gutter)
    if right and width_of(right) > max(0, room - min(width_of(line), 10)):
        right = ()
    elif right and not right[0][0].startswith(" "):
        right = ((" ", "text"), *right)
    room -= width_of(right)
    total = cell_len("".join(words for words, _ in line).rstrip(" "))
    left = min(left, max(0, total - 1))
    body = clip(line, left, room)
    if total - left > room > 0:
        body = (*clip(body, 0, room - 1), ("›", "faint"))
    if left and body:
        body = (("‹", "faint"), *clip(body, 1, room))
    blank = max(0, room - width_of(body))
    edge: Tint = tint
    ground: Tint = tint or row.tint
    spans = [
        *((words, role, edge) for words, role in gutter),
        *((words, role, ground) for words, role in body),
        (" " * blank, "text", edge),
        *((words, role, edge) for words, role in right),
    ]
    if theme.name == "mono":
        spans = [(part, role, on) for words, role, on in spans for part in _BLANKS.split(words)]
    return [
        Segment(words, theme.base(on, words.isspace()) + theme.style(role, on))
        for words, role, on in spans
        if words
    ]


def fill(line: Line, right: Line, width: int, theme: Theme) -> list[Segment]:
    """One line of the screen's edge: left words, right words."""
    return paint(Row(body=line, right=right), width, 0, theme, "title")


def exactly(segments: list[Segment], width: int, theme: Theme) -> list[Segment]:
    """Cut or padded to `width` cells."""
    used = sum(cell_len(segment.text) for segment in segments)
    if used < width:
        return [*segments, Segment(" " * (width - used), theme.base(""))]
    if used == width:
        return segments
    kept: list[Segment] = []
    for segment in segments:
        size = cell_len(segment.text)
        if size > width:
            return [*kept, Segment(set_cell_size(segment.text, width), segment.style)]
        kept.append(segment)
        width -= size
    return kept
