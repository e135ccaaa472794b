"""The screen in ASCII: for terminals without the glyphs, or that give them two cells."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from viewers.plain import GLYPHS, can_encode

TERMINALS = ("ansi", "cons25", "dumb", "linux", "vt100", "vt102", "vt220")
"""Values of `TERM` whose fonts have few glyphs."""


def needed(encoding: str, terminal: str) -> bool:
    """Whether a terminal shows ASCII alone, as its encoding and `TERM` tell."""
    try:
        "◆".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return terminal in TERMINALS


class Ascii(LineFilter):
    """Puts an ASCII character in place of each glyph; what `encoding` has and is surely as wide
    everywhere stays."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.text.isascii()
            else Segment(
                "".join(_instead(one, self._encoding) for one in segment.text), *segment[1:]
            )
            for segment in segments
        ]


@lru_cache(maxsize=4096)
def _instead(character: str, encoding: str) -> str:
    """In as many cells; `?` for what has no likeness."""
    if character.isascii() or character in GLYPHS:
        return GLYPHS.get(character, character)
    sure = unicodedata.east_asian_width(character) != "A"
    return character if sure and can_encode(character, encoding) else "?" * cell_len(character)
