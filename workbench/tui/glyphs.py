"""The screen in ASCII, for terminals that lack the glyphs or draw them two cells wide."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tcw.viewers.plain import GLYPHS, can_encode

TERMINALS = ("ansi", "cons25", "dumb", "linux", "vt100", "vt102", "vt220")
"""Values of `TERM` whose fonts have few glyphs."""


def needed(encoding: str, terminal: str) -> bool:
    """Whether a terminal shows only ASCII, judged by its encoding and `TERM`."""
    try:
        "◆".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return terminal in TERMINALS


class Ascii(LineFilter):
    """Replaces glyphs by ASCII; keeps characters that `encoding` has and whose width is
    unambiguous."""

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
    """A replacement of the same width, `?` where no character is similar."""
    if character.isascii() or character in GLYPHS:
        return GLYPHS.get(character, character)
    sure = unicodedata.east_asian_width(character) != "A"
    return character if sure and can_encode(character, encoding) else "?" * cell_len(character)
