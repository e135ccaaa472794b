"""Overlays: the help, and the palette of all commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from tcw.viewers.kit.cells import pad
from tcw.viewers.kit.spans import Line, width_of
from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes.rows import BLANK, Row
from tcw.viewers.plain import plain
from tcw.workbench.tui.paint import exactly, paint


class Sheet(Widget):
    """Rows on a raised background."""

    def __init__(self, theme: Theme, width: int, height: int) -> None:
        super().__init__()
        self.theme = theme
        self.rows: Sequence[tuple[Row, Tint]] = ()
        self.styles.width = width
        self.styles.height = height

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        row, tint = self.rows[y] if y < len(self.rows) else (BLANK, "title")
        segments = paint(row, width, 0, self.theme, tint or "title")
        return Strip(exactly(segments, width, self.theme))


class Help(ModalScreen[None]):
    """One sentence, the keys, the badges: at most twenty lines."""

    DEFAULT_CSS = "Help { align: center middle; background: $background 0%; }"

    def __init__(self, theme: Theme, lines: Sequence[Line]) -> None:
        super().__init__()
        self.theme = theme
        self.lines = list(lines)[:20]

    def compose(self) -> ComposeResult:
        width = min(self.app.size.width, max([40, *(width_of(line) for line in self.lines)]) + 4)
        sheet = Sheet(self.theme, width, min(len(self.lines) + 2, self.app.size.height))
        rows: list[tuple[Row, Tint]] = [(BLANK, "title")]
        rows += [(Row(gutter=(("  ", "text"),), body=line), "title") for line in self.lines]
        sheet.rows = rows
        yield sheet

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.dismiss(None)

    def on_click(self) -> None:
        self.dismiss(None)


@dataclass(frozen=True)
class PaletteChoice:
    """An entry of the palette."""

    words: str
    run: Callable[[], Awaitable[None] | None]
    """What it does."""
    key: str = ""
    also: str = ""
    """Further words that find it."""


class Palette(ModalScreen[PaletteChoice]):
    """A list to filter by typing; returns the chosen entry, None for none."""

    DEFAULT_CSS = "Palette { align: center top; background: $background 0%; }"
    HEIGHT = 14

    def __init__(self, theme: Theme, choices: Sequence[PaletteChoice], asks: str = "") -> None:
        """`asks`: the prompt, if the entries are not commands."""
        super().__init__()
        self.theme = theme
        self.choices = choices
        self.asks = plain(asks)
        self.words = ""
        self.index = 0

    def compose(self) -> ComposeResult:
        width = min(64, self.app.size.width)
        rows = min(self.HEIGHT, len(self.choices))
        self.sheet = Sheet(self.theme, width, min(rows + 3, self.app.size.height))
        self.sheet.styles.margin = (2, 0, 0, 0)
        yield self.sheet

    def on_mount(self) -> None:
        self._fill()

    def found(self) -> list[PaletteChoice]:
        """Choices that contain every typed word; those that start with the words come first."""
        words = self.words.casefold().split()
        kept = [
            c
            for c in self.choices
            if all(word in f"{c.words} {c.also}".casefold() for word in words)
        ]
        return sorted(kept, key=lambda c: not c.words.casefold().startswith(" ".join(words)))

    def _fill(self) -> None:
        found = self.found()
        self.index = max(0, min(self.index, len(found) - 1))
        prompt = Row(
            body=((f" {self.asks}: ", "key"), (plain(self.words), "text"), ("▏", "accent")),
            right=((f"{len(found)} found  ", "dim"),) if len(found) > self.HEIGHT else (),
        )
        rows: list[tuple[Row, Tint]] = [(prompt, "title"), (BLANK, "title")]
        first = max(0, min(self.index - self.HEIGHT // 2, len(found) - self.HEIGHT))
        for number, choice in enumerate(found[first : first + self.HEIGHT], start=first):
            row = Row(
                body=(("  ", "text"), (pad(plain(choice.words), 44), "text")),
                right=((choice.key + "  ", "accent"),),
            )
            rows.append((row, "selected" if number == self.index else "title"))
        if not found:
            rows.append((Row(body=(("  no command has these words", "dim"),)), "title"))
        self.sheet.rows = rows
        self.sheet.refresh()

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        found = self.found()
        if event.key == "escape":
            self.dismiss(None)
        elif event.key == "enter":
            self.dismiss(found[self.index] if found else None)
        elif event.key in ("down", "ctrl+n", "tab"):
            self.index += 1
        elif event.key in ("up", "ctrl+p", "shift+tab"):
            self.index -= 1
        elif event.key == "backspace":
            self.words = self.words[:-1]
        elif event.is_printable and event.character:
            self.words += event.character
            self.index = 0
        self._fill()

    def on_click(self, event: events.Click) -> None:
        widget, _ = self.get_widget_at(event.screen_x, event.screen_y)
        if widget is not self.sheet:
            self.dismiss(None)
            return
        row = event.y - 2
        found = self.found()
        first = max(0, min(self.index - self.HEIGHT // 2, len(found) - self.HEIGHT))
        if 0 <= row < self.HEIGHT and first + row < len(found):
            self.dismiss(found[first + row])
