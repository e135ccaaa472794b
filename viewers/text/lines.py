"""Styled lines of text: what every text view is made of, before colour and encoding.

A span's role says what it means; only `write` knows how that looks. All text passes through
`plain` on its way in, so no raw text of the user's reaches a terminal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from viewers.places import cut
from viewers.plain import fit_encoding, plain

Role = Literal["", "strong", "dim", "accent", "won", "lost", "recompile", "kept"]

COLOURS: dict[str, dict[Role, str]] = {
    "dark": {
        "": "",
        "strong": "bold",
        "dim": "#8b93a0",
        "accent": "#8ab4f8",
        "won": "#33d6a6",
        "lost": "#e8613c",
        "recompile": "#ffd04a",
        "kept": "#cc6bff",
    },
    "light": {
        "": "",
        "strong": "bold",
        "dim": "#5c636d",
        "accent": "#1c46a0",
        "won": "#0a7f6d",
        "lost": "#8f1f0c",
        "recompile": "#8a7000",
        "kept": "#b03bd0",
    },
}
"""The colour of each role; the text never depends on it."""


@dataclass(frozen=True)
class Span:
    text: str
    role: Role = ""


@dataclass(frozen=True)
class Line:
    """One line. `fixed` lines are cut at the width; others wrap, indented by `hang` cells."""

    spans: tuple[Span, ...]
    hang: int = 0
    fixed: bool = False

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


BLANK = Line(())


def line(*pieces: str | tuple[str, Role], hang: int = 0, fixed: bool = False) -> Line:
    """A line from texts and (text, role) pairs; each is made plain."""
    spans = []
    for piece in pieces:
        one = Span(plain(piece)) if isinstance(piece, str) else Span(plain(piece[0]), piece[1])
        if one.text:
            spans.append(one)
    return Line(tuple(spans), hang=hang, fixed=fixed)


def prose(label: str, text: str, indent: int = 0) -> list[Line]:
    """A labelled text of any number of lines; they keep their indents, blank ones are dropped."""
    width = indent + len(label)
    rows = [row for row in text.splitlines() if row.strip()]
    return [
        line((" " * indent + label if index == 0 else " " * width, "dim"), row, hang=width)
        for index, row in enumerate(rows)
    ]


def fitted(lines: Iterable[Line], width: int) -> list[Line]:
    """The lines cut or wrapped to `width` cells."""
    done: list[Line] = []
    for one in lines:
        if cell_len(one.text.rstrip()) <= width:
            done.append(one)
        elif one.fixed:
            done.append(_cut(one, width))
        else:
            done.extend(_wrap(one, width))
    return done


def to_text(lines: Iterable[Line], width: int) -> str:
    """The lines as plain text, without colours; ends with a newline."""
    return "".join(one.text.rstrip() + "\n" for one in fitted(lines, width))


def write(lines: Iterable[Line], stream: TextIO, width: int) -> None:
    """Write the lines to `stream`: coloured on a terminal unless NO_COLOR is set, and in ASCII if
    the stream's encoding lacks our glyphs."""
    encoding = stream.encoding or "ascii"
    ready = fitted(lines, width)
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        for one in ready:
            stream.write(fit_encoding(one.text.rstrip(), encoding) + "\n")
        stream.flush()
        return
    colours = COLOURS["light" if _light_terminal() else "dark"]
    console = Console(file=stream, width=max(width, 500), highlight=False, markup=False)
    for one in ready:
        text = Text(end="\n", no_wrap=True)
        for span in one.spans:
            text.append(fit_encoding(span.text, encoding), Style.parse(colours[span.role]))
        console.print(text, soft_wrap=True)


def _light_terminal() -> bool:
    """Whether the terminal reports a light background (COLORFGBG, set by rxvt and Konsole)."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


def _cut(one: Line, width: int) -> Line:
    shown = cut(one.text, width)
    return Line((*_slice(one.spans, 0, len(shown) - 1), Span("›", "dim")), one.hang, True)


def _wrap(one: Line, width: int) -> list[Line]:
    """Break between words; a word longer than a line is broken at the end of the line."""
    hang = min(one.hang, width // 2)
    rows = [Line(_slice(one.spans, *span), one.hang) for span in _rows(one.text, width, hang)]
    indent = Span(" " * hang)
    return [rows[0], *(Line((indent, *row.spans), one.hang) for row in rows[1:])]


def _rows(text: str, width: int, hang: int) -> list[tuple[int, int]]:
    """(start, end) of each row, in characters; all but the first are `hang` cells narrower."""
    rows: list[tuple[int, int]] = []
    start = used = 0
    room = width
    for word in re.finditer(r"^ *[^ ]+ *|[^ ]+ *", text):
        size = cell_len(word[0].rstrip())
        if used and used + size > room:
            rows.append((start, word.start()))
            start, used, room = word.start(), 0, width - hang
        if not used:
            for index in range(word.start(), word.end()):
                if used + cell_len(text[index]) > room and text[index] != " ":
                    rows.append((start, index))
                    start, used, room = index, 0, width - hang
                used += cell_len(text[index])
        else:
            used += cell_len(word[0])
    return [*rows, (start, len(text))]


def _slice(spans: tuple[Span, ...], start: int, end: int) -> tuple[Span, ...]:
    """The characters from `start` to `end` of the spans, each with its role."""
    found = []
    at = 0
    for span in spans:
        piece = span.text[max(0, start - at) : max(0, end - at)]
        if piece:
            found.append(Span(piece, span.role))
        at += len(span.text)
    return tuple(found)
