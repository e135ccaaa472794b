"""Text in the cells of a terminal: cut, padded, wrapped."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

from tcw.viewers.plain import plain

PER_CELL = 8
"""Maximum characters of a text read per cell: more would be combining marks on one letter."""
NARROWEST = 8
"""Minimum cells of a wrapped line."""


def cut(text: str, width: int) -> str:
    """At most `width` cells of `text`; `›` marks a cut at the right."""
    if width <= 0:
        return ""
    shown = text[: PER_CELL * width]
    if len(shown) == len(text) and cell_len(text) <= width:
        return text
    return set_cell_size(shown, width - 1).rstrip() + "›"


def keep_end(text: str, width: int) -> str:
    """At most `width` cells of the end of `text`: `…ln1.weight`."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    room = width - 1
    start = len(text)
    while start and (size := cell_len(text[start - 1])) <= room:
        room -= size
        start -= 1
    return "…" + text[start:]


def pad(text: str, width: int) -> str:
    """`text` (already plain) padded on the right to `width` cells."""
    return text + " " * max(0, width - cell_len(text))


def pad_left(text: str, width: int) -> str:
    """`text` (already plain) padded on the left to `width` cells."""
    return " " * max(0, width - cell_len(text)) + text


def wrap(text: str, width: int) -> list[str]:
    """Prose, made plain, in lines of at most `width` cells."""
    words = plain(" ".join(text.split()))
    return [words[start:end].rstrip() for start, end in rows_of(words, max(NARROWEST, width))]


def rows_of(text: str, width: int, hang: int = 0) -> list[tuple[int, int]]:
    """(start, end) of each row of a wrapped text, in characters; all but the first are `hang` cells
    narrower. Rows break between words; a word longer than a row begins right after the word before
    it, and is broken at the row's end."""
    rows: list[tuple[int, int]] = []
    start = used = 0
    room = width
    for word in re.finditer(r"^ *[^ ]+ *|[^ ]+ *", text):
        size = cell_len(word[0].rstrip())
        fits_below = size <= width - hang or room - used < NARROWEST
        if used and used + size > room and fits_below:
            rows.append((start, word.start()))
            start, used, room = word.start(), 0, width - hang
        if used + size <= room and (used or word[0].isascii()):
            used += cell_len(word[0])
            continue
        for index in range(word.start(), word.end()):
            letter = text[index]
            cells = 1 if " " <= letter <= "~" else cell_len(letter)
            if used + cells > room and letter != " ":
                rows.append((start, index))
                start, used, room = index, 0, width - hang
            used += cells
    return [*rows, (start, len(text))]
