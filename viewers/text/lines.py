"""Lines of text with meaning: what every text view is made of, before colour and encoding.

A span's role says what it means; only `write` knows how that looks. All text passes through
`plain` on its way in, so that nothing of the user's reaches a terminal raw.
"""

from __future__ import annotations

import os
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
"""The colours of meanings; the text never depends on them."""


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


def fitted(lines: Iterable[Line], width: int) -> list[Line]:
    """The lines cut or wrapped to `width` cells."""
    done: list[Line] = []
    for one in lines:
        if cell_len(one.text) <= width:
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
    """Write the lines to `stream`: coloured on a terminal unless NO_COLOR is set, and in ASCII
    where the stream's encoding has no glyphs."""
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
    """Whether the terminal says that its background is light (COLORFGBG, as rxvt, Konsole do)."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


def _cut(one: Line, width: int) -> Line:
    spans: list[Span] = []
    left = width
    for index, span in enumerate(one.spans):
        size = cell_len(span.text)
        last = index == len(one.spans) - 1
        if size < left or (size == left and last):
            spans.append(span)
            left -= size
            continue
        spans.append(Span(cut(span.text + " ", left) if size == left else cut(span.text, left)))
        spans[-1] = Span(spans[-1].text, span.role)
        break
    return Line(tuple(spans), one.hang, one.fixed)


def _wrap(one: Line, width: int) -> list[Line]:
    """Break between words; a word longer than a line is broken where the line ends."""
    rows: list[list[Span]] = [[]]
    used = 0
    for word in _words(one.spans):
        shown = sum(cell_len(span.text.rstrip()) for span in word[-1:]) + sum(
            cell_len(span.text) for span in word[:-1]
        )
        if used + shown > width and used > one.hang:
            rows.append([Span(" " * one.hang)])
            used = one.hang
        for span in word:
            text = span.text
            while used + cell_len(text.rstrip()) > width:
                head, text = _split(text, max(1, width - used))
                rows[-1].append(Span(head, span.role))
                rows.append([Span(" " * one.hang)])
                used = one.hang
            rows[-1].append(Span(text, span.role))
            used += cell_len(text)
    return [Line(tuple(row), one.hang) for row in rows]


def _words(spans: tuple[Span, ...]) -> list[list[Span]]:
    """The spans cut after each run of spaces; a word may reach over spans."""
    words: list[list[Span]] = [[]]
    for span in spans:
        rest = span.text
        while rest:
            bare = len(rest) - len(rest.lstrip(" "))
            end = rest.find(" ", bare)
            if end < 0:
                words[-1].append(Span(rest, span.role))
                break
            while end < len(rest) and rest[end] == " ":
                end += 1
            words[-1].append(Span(rest[:end], span.role))
            words.append([])
            rest = rest[end:]
    return [word for word in words if word]


def _split(text: str, width: int) -> tuple[str, str]:
    """`text` cut after at most `width` cells, at least one character."""
    used = 0
    for index, character in enumerate(text):
        used += cell_len(character)
        if used > width and index:
            return text[:index], text[index:]
    return text, ""
