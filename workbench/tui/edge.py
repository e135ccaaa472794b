"""The lines at the edges of the screen: header, selection bar, timeline, footer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes.rows import Row
from tcw.workbench.tui.paint import exactly, paint

Lines = Sequence[tuple[Row, Tint]]


class Edge(Widget):
    """Shows the lines that `make` returns for its width; hidden if there are none."""

    DEFAULT_CSS = "Edge { height: 1; width: 1fr; }"

    @dataclass(eq=False)
    class Clicked(Message):
        """A cell was clicked."""

        edge: Edge
        x: int
        y: int

    def __init__(self, name: str, make: Callable[[int], Lines], theme: Theme) -> None:
        super().__init__(id=name)
        self.make = make
        self.theme = theme
        self.lines: Lines = ()
        self._height = 1
        """The requested height; `size` lags behind it."""

    def update(self) -> None:
        """Rebuild the lines."""
        width = self.size.width or self.app.size.width
        before, self.lines = self.lines, self.make(width)
        if before == self.lines and self.lines:
            return
        self.display = bool(self.lines)
        if self.lines and self._height != len(self.lines):
            self._height = len(self.lines)
            self.styles.height = self._height
        self.refresh()

    def on_resize(self) -> None:
        self.update()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y >= len(self.lines):
            return Strip(exactly([], width, self.theme))
        row, tint = self.lines[y]
        return Strip(exactly(paint(row, width, 0, self.theme, tint), width, self.theme))

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Clicked(self, event.x, event.y))
