"""Styled lines of text: what every text view is made of, before colour and encoding.

A span's role says what it means; only `write` knows how that looks. All text passes through
`plain` on its way in, so no raw text of the user's reaches a terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from viewers.kit.cells import cut, rows_of
from viewers.kit.colours import BOLD, DARK, FOREGROUND, LIGHT
from viewers.kit.spans import Line as Spans
from viewers.kit.spans import Role, Span, part, text, words_of
from viewers.plain import fit_encoding


@dataclass(frozen=True)
class Line:
    """One line. `fixed` lines are cut at the width; others wrap, indented by `hang` cells."""

    spans: Spans
    hang: int = 0
    fixed: bool = False

    @property
    def text(self) -> str:
        return words_of(self.spans)


BLANK = Line(())


def line(*pieces: str | tuple[str, Role], hang: int = 0, fixed: bool = False) -> Line:
    """A line from texts and (text, role) pairs; each is made plain."""
    spans = (text(piece) if isinstance(piece, str) else text(*piece) for piece in pieces)
    return Line(tuple(span for span in spans if span[0]), hang, fixed)


def prose(label: str, words: str, indent: int = 0) -> list[Line]:
    """A labelled text of any number of lines; they keep their indents, blank ones are dropped."""
    width = indent + len(label)
    rows = [row for row in words.splitlines() if row.strip()]
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
            shown = cut(one.text, width)
            spans = (*part(one.spans, 0, len(shown) - 1), ("›", "faint"))
            done.append(Line(spans, one.hang, True))
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
    colours = LIGHT if _light_terminal() else DARK
    console = Console(file=stream, width=max(width, 500), highlight=False, markup=False)
    for one in ready:
        shown = Text(end="\n", no_wrap=True)
        for words, role in one.spans:
            shown.append(fit_encoding(words, encoding), _style(role, colours))
        console.print(shown, soft_wrap=True)


def _style(role: Role, colours: dict[str, str]) -> Style:
    """Text keeps the terminal's own colour."""
    colour = FOREGROUND[role]
    return Style(color=None if colour == "text" else colours[colour], bold=role in BOLD or None)


def _light_terminal() -> bool:
    """Whether the terminal reports a light background (COLORFGBG, set by rxvt and Konsole)."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


def _wrap(one: Line, width: int) -> list[Line]:
    hang = min(one.hang, width // 2)
    rows = [part(one.spans, *ends) for ends in rows_of(one.text, width, hang)]
    indent: Span = (" " * hang, "text")
    return [Line(spans if not at else (indent, *spans), one.hang) for at, spans in enumerate(rows)]
