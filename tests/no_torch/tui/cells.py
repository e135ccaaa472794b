"""A screen as one text: its cells, and below them the role of each run of cells.

Each line that has words or a ground is described by its number, its runs and its grounds:
`12  dim 2-3, text 7-17 | selected 0-79`. The number is the line's in this text, columns count from
0, and blanks that show no mark are in no run. `dim` is the role whose look the cells have, the
first of those that look alike; `looks-THEME.txt` tells what it looks like. What has no role is
written as its colour.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import groupby

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import App

from tcw.viewers.kit.theme import THEMES, Theme, ThemeName
from tcw.workbench.tui.picture import painted

MARKS = ("bold", "italic", "underline", "dim", "strike")
SEEN_ON_BLANKS = ("underline", "strike", "reverse")
OF_NO_ROLE = ("rule", "dim-on-fill")
"""Colours that are drawn with themselves."""
Look = tuple[str, str, str]
"""Colour of the words, colour behind them, marks; no colour is the terminal's own."""
Cell = tuple[str, Look]
"""What is in it and how it looks; the second cell of a wide character is empty."""


def look(style: Style) -> Look:
    """How words of this style look."""
    front, behind = (
        "" if colour is None or colour.is_default else colour.get_truecolor().hex
        for colour in (style.color, style.bgcolor)
    )
    marks = [mark for mark in MARKS if getattr(style, mark)]
    if style.reverse and not front and not behind:
        marks.append("reverse")
    elif style.reverse:
        front, behind = behind, front
    return front, behind, " ".join(marks)


@cache
def roles(name: ThemeName) -> dict[Look, str]:
    """The role of each look of a theme with colours; without colours, marks say it themselves."""
    theme, found = THEMES[name], dict[Look, str]()
    for colour in OF_NO_ROLE if theme.colours else ():
        for ground in theme.colours.values():
            found[theme.colours[colour], ground, ""] = colour
    for role, tint in theme._legible if theme.colours else ():
        found.setdefault(look(theme.base(tint) + theme.style(role, tint)), role)
    return found


@cache
def grounds(name: ThemeName) -> dict[str, str]:
    """The name of each colour that stands behind words."""
    theme = THEMES[name]
    found = {theme.colours[colour]: colour for colour in reversed(theme.colours)}
    return found | {theme.background: "", "": ""}


def looks(theme: Theme) -> str:
    """A line per colour, role and tint: what the names in the texts of screens stand for."""
    lines = [f"= {name} {colour}" for name, colour in theme.colours.items()]
    for role, tint in theme._legible:
        front, behind, marks = look(theme.base(tint) + theme.style(role, tint))
        where = f"{role} on {tint}" if tint else role
        lines.append(" ".join(filter(None, (f"{where}:", front, behind and f"on {behind}", marks))))
    return "\n".join(lines) + "\n"


def described(app: App[object], theme: ThemeName) -> str:
    """The text of what `app` shows, and its roles."""
    rows = [_cells(segments) for segments in painted(app)]
    texts = ["".join(words for words, _ in row).rstrip() for row in rows]
    kinds = [
        f"{number:2}  {kind}"
        for number, row in enumerate(rows, 1)
        if (kind := " | ".join(filter(None, (_runs(row, theme), _grounds(row, theme)))))
    ]
    return "\n".join([*texts, "-" * len(rows[0]), *kinds, ""])


def _cells(segments: Iterable[Segment]) -> list[Cell]:
    cells: list[Cell] = []
    for segment in segments:
        if segment.control:
            continue
        style = look(segment.style or Style())
        for letter in segment.text:
            size = cell_len(letter)
            if size:
                cells.extend([(letter, style), *[("", style)] * (size - 1)])
            elif cells:
                cells[-1] = cells[-1][0] + letter, cells[-1][1]
    return cells


def _runs(row: list[Cell], theme: ThemeName) -> str:
    """Words between blanks; one blank within words of one role does not part them."""
    found: list[tuple[str, int, int]] = []
    for at, (letter, own) in enumerate(row):
        front, _, marks = own
        if letter == " " and not any(mark in marks for mark in SEEN_ON_BLANKS):
            continue
        name = roles(theme).get(own) or " ".join(filter(None, (front, marks))) or "plain"
        if found and found[-1][0] == name and at - found[-1][2] <= 2:
            found[-1] = name, found[-1][1], at
        else:
            found.append((name, at, at))
    return ", ".join(f"{name} {_span(start, end)}" for name, start, end in found)


def _grounds(row: list[Cell], theme: ThemeName) -> str:
    found = []
    for colour, group in groupby(enumerate(row), key=lambda one: one[1][1][1]):
        columns = [at for at, _ in group]
        if name := grounds(theme).get(colour, colour):
            found.append(f"{name} {_span(columns[0], columns[-1])}")
    return ", ".join(found)


def _span(start: int, end: int) -> str:
    return str(start) if start == end else f"{start}-{end}"
