"""A text report as a piece of HTML for a notebook: its lines, in our colours, without script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tcw.viewers.kit.colours import BOLD, DARK, FOREGROUND, LIGHT
from tcw.viewers.kit.lines import TextLine, fitted
from tcw.viewers.kit.spans import Role

WIDTH = 100
"""Columns that lines are wrapped to."""


def report(lines: Iterable[TextLine]) -> str:
    """The lines in a `<pre>`. The reader's theme chooses between our two sets of colours; all text
    is escaped."""
    rows = []
    for line in fitted(lines, WIDTH):
        rows.append("".join(_span(words, role) for words, role in line.spans).rstrip())
    return '<pre style="line-height:1.3;overflow-x:auto">' + "\n".join(rows) + "\n</pre>"


def _span(words: str, role: Role) -> str:
    colour = FOREGROUND[role]
    style = "" if colour == "text" else f"color:light-dark({LIGHT[colour]},{DARK[colour]})"
    style += ";font-weight:bold" if role in BOLD else ""
    shown = escape(words)
    return f'<span style="{style.lstrip(";")}">{shown}</span>' if style else shown
