"""A screen as a standalone SVG, which loads nothing; the same screen gives the same text.

Each run of cells has its own position and length, so that no font shifts a column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App

from tcw.viewers.kit.theme import THEMES

CELL, LINE, FONT = 10, 19, 16.61
"""Pixels: width of a cell, height of a line, and the font size at which Menlo and DejaVu Sans Mono
have that width."""
MARGIN, BASELINE = 10, 15
FONTS = "Menlo, 'DejaVu Sans Mono', Consolas, monospace"

_GAP = re.compile(r"( {2,})")
"""Blanks between words are not drawn."""


def picture(app: App[object], title: str = "tcw") -> str:
    """The SVG of what `app` shows."""
    return _Drawing(app.size.width, app.size.height, title).of(painted(app))


def painted(app: App[object]) -> list[list[Segment]]:
    """The screen's lines as the terminal gets them, with the screens behind a dialog."""
    update = app.screen._compositor.render_update(
        full=True, screen_stack=app._background_screens, simplify=True
    )
    return [[segment for strip in strips for segment in strip] for strips in update.strips]  # type: ignore[union-attr]


class _Drawing:
    """Draws rectangles and texts; each style is a class, numbered in order of use."""

    def __init__(self, width: int, height: int, title: str) -> None:
        dark = THEMES["dark"].colours
        self.background, self.foreground = dark["background"], dark["text"]
        """Stand in for the terminal's default colours, which are unknown."""
        self.grounds = self.background, THEMES["light"].colours["background"]
        self.size = width * CELL + 2 * MARGIN, height * LINE + 2 * MARGIN
        self.title = title
        self.classes: dict[str, str] = {}

    def of(self, rows: Iterable[list[Segment]]) -> str:
        """The whole document."""
        runs = [list(_merged(row)) for row in rows]
        areas: Counter[str] = Counter()
        for run in runs:
            for _, words, style in run:
                areas[self._colours(style)[1]] += cell_len(words)
        ground = max(self.grounds, key=lambda colour: areas[colour])
        grounds: list[str] = []
        texts: list[str] = []
        for y, run in enumerate(runs):
            for colour, group in groupby(run, key=lambda one: self._colours(one[2])[1]):
                spans = list(group)
                if colour != ground:
                    start, end = spans[0][0], spans[-1][0] + cell_len(spans[-1][1])
                    grounds.append(self._ground(start, y, end - start, colour))
            for x, words, style in run:
                texts.extend(self._words(x, y, words, style))
        width, height = self.size
        rules = "\n".join(f".{name} {{ {rule} }}" for rule, name in self.classes.items())
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
                f"<title>{escape(self.title)}</title>",
                f"<style>\ntext {{ font: {FONT}px {FONTS}; white-space: pre; }}\n{rules}\n</style>",
                f'<rect width="{width}" height="{height}" rx="8" fill="{ground}"/>',
                f'<g shape-rendering="crispEdges" transform="translate({MARGIN} {MARGIN})">',
                *grounds,
                "</g>",
                f'<g transform="translate({MARGIN} {MARGIN + BASELINE})" xml:space="preserve">',
                *texts,
                "</g>",
                "</svg>",
                "",
            ]
        )

    def _ground(self, x: int, y: int, cells: int, colour: str) -> str:
        at = f'x="{x * CELL}" y="{y * LINE}" width="{cells * CELL}" height="{LINE}"'
        return f'<rect {at} fill="{colour}"/>'

    def _words(self, x: int, y: int, words: str, style: Style) -> Iterable[str]:
        for part in [words] if style.underline else _GAP.split(words):
            cells = cell_len(part)
            drawn = part if style.underline else part.strip()
            if drawn:
                left = x + len(part) - len(part.lstrip()) if drawn != part else x
                yield (
                    f'<text class="{self._class(style)}" x="{left * CELL}" y="{y * LINE}" '
                    f'textLength="{cell_len(drawn) * CELL}">{escape(drawn)}</text>'
                )
            x += cells

    def _class(self, style: Style) -> str:
        rules = [f"fill: {self._colours(style)[0]};"]
        if style.bold:
            rules.append("font-weight: bold;")
        if style.italic:
            rules.append("font-style: italic;")
        if style.underline:
            rules.append("text-decoration: underline;")
        if style.dim:
            rules.append("opacity: 0.6;")
        return self.classes.setdefault(" ".join(rules), f"s{len(self.classes)}")

    def _colours(self, style: Style) -> tuple[str, str]:
        """Foreground and background."""
        front = _hex(style.color, self.foreground)
        behind = _hex(style.bgcolor, self.background)
        return (behind, front) if style.reverse else (front, behind)


def _hex(colour: Color | None, otherwise: str) -> str:
    if colour is None or colour.is_default:
        return otherwise
    return colour.get_truecolor().hex


def _merged(row: Iterable[Segment]) -> Iterable[tuple[int, str, Style]]:
    """(column, words, style) of each run; adjacent segments of one style are merged."""
    at, words, style = 0, "", Style()
    for segment in row:
        if segment.control or not segment.text:
            continue
        own = segment.style or Style()
        if words and own != style:
            yield at, words, style
            at, words = at + cell_len(words), ""
        words, style = words + segment.text, own
    if words:
        yield at, words, style
