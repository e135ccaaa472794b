"""Lines on a stream: plain text, or coloured on a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from tcw.viewers.kit.colours import BOLD, DARK, FOREGROUND, LIGHT
from tcw.viewers.kit.lines import TextLine, fitted
from tcw.viewers.kit.spans import Role
from tcw.viewers.plain import fit_encoding


def to_text(lines: Iterable[TextLine], width: int) -> str:
    """The lines as plain text, without colours; ends with a newline."""
    return "".join(line.text.rstrip() + "\n" for line in fitted(lines, width))


def write(lines: Iterable[TextLine], stream: TextIO, width: int) -> None:
    """Write the lines to `stream`: coloured on a terminal unless NO_COLOR is set, and in ASCII if
    the stream's encoding lacks our glyphs."""
    encoding = stream.encoding or "ascii"
    ready = fitted(lines, width)
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        for line in ready:
            stream.write(fit_encoding(line.text.rstrip(), encoding) + "\n")
        stream.flush()
        return
    colours = LIGHT if _light_terminal() else DARK
    console = Console(file=stream, width=max(width, 500), highlight=False, markup=False)
    for text_line in ready:
        shown = Text(end="\n", no_wrap=True)
        for words, role in text_line.spans:
            shown.append(fit_encoding(words, encoding), _style(role, colours))
        console.print(shown, soft_wrap=True)


def _style(role: Role, colours: dict[str, str]) -> Style:
    """Text keeps the terminal's own colour."""
    colour = FOREGROUND[role]
    return Style(color=None if colour == "text" else colours[colour], bold=role in BOLD or None)


def _light_terminal() -> bool:
    """Whether the terminal reports a light background (COLORFGBG, set by rxvt and Konsole)."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
