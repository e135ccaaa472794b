"""Dialogs: the help, the palette of all commands, and the question before a trace's code runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.cells import cell_len, chop_cells
from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from tcw.viewers.kit.cells import pad, wrap
from tcw.viewers.kit.spans import Line, Role, width_of
from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes.rows import BLANK, Row
from tcw.viewers.plain import plain
from tcw.workbench.tui.compile_plan import PlanLine
from tcw.workbench.tui.paint import exactly, paint

Answer = TypeVar("Answer")


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


class Dialog(ModalScreen[Answer]):
    """A sheet that takes all keys; a click beside it gives up."""

    DEFAULT_CSS = "Dialog { align: center middle; background: $background 0%; }"

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.sheet = Sheet(theme, 1, 1)

    def compose(self) -> ComposeResult:
        yield self.sheet

    def fill(self, rows: Sequence[tuple[Row, Tint]], width: int, height: int) -> None:
        """Show rows on a sheet of this size, as far as the screen has room."""
        self.sheet.styles.width = min(width, self.app.size.width)
        self.sheet.styles.height = min(height, self.app.size.height)
        self.sheet.rows = rows
        self.sheet.refresh()

    def pressed(self, event: events.Key) -> None:
        """A key; any gives up."""
        self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.pressed(event)

    def clicked(self, y: int) -> None:
        """A line of the sheet was clicked."""

    def on_click(self, event: events.Click) -> None:
        widget, _ = self.get_widget_at(event.screen_x, event.screen_y)
        if widget is not self.sheet:
            self.dismiss(None)
        else:
            self.clicked(event.screen_y - self.sheet.region.y)


def _indented(lines: Sequence[Line]) -> list[tuple[Row, Tint]]:
    """The lines below a blank one."""
    return [
        (BLANK, "title"),
        *((Row(gutter=(("  ", "text"),), body=line), "title") for line in lines),
    ]


class Help(Dialog[None]):
    """One sentence, the keys, the badges."""

    def __init__(self, theme: Theme, lines: Sequence[Line]) -> None:
        super().__init__(theme)
        self.lines = lines

    def on_mount(self) -> None:
        width = max([40, *(width_of(line) for line in self.lines)]) + 4
        self.fill(_indented(self.lines), width, len(self.lines) + 2)

    def clicked(self, y: int) -> None:
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


class Palette(Dialog[PaletteChoice]):
    """A list to filter by typing; returns the chosen entry, None for none."""

    DEFAULT_CSS = "Palette { align: center top; }"
    HEIGHT = 14

    def __init__(self, theme: Theme, choices: Sequence[PaletteChoice], asks: str = "") -> None:
        """`asks`: the prompt, if the entries are not commands."""
        super().__init__(theme)
        self.choices = choices
        self.asks = plain(asks)
        self.words = ""
        self.index = 0

    def on_mount(self) -> None:
        self.sheet.styles.margin = (2, 0, 0, 0)
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
        choices = self.found()
        self.index = max(0, min(self.index, len(choices) - 1))
        prompt = Row(
            body=((f" {self.asks}: ", "key"), (plain(self.words), "text"), ("▏", "accent")),
            right=((f"{len(choices)} found  ", "dim"),) if len(choices) > self.HEIGHT else (),
        )
        rows: list[tuple[Row, Tint]] = [(prompt, "title"), (BLANK, "title")]
        first = max(0, min(self.index - self.HEIGHT // 2, len(choices) - self.HEIGHT))
        for number, choice in enumerate(choices[first : first + self.HEIGHT], start=first):
            row = Row(
                body=(("  ", "text"), (pad(plain(choice.words), 44), "text")),
                right=((choice.key + "  ", "accent"),),
            )
            rows.append((row, "selected" if number == self.index else "title"))
        if not choices:
            rows.append((Row(body=(("  no command has these words", "dim"),)), "title"))
        self.fill(rows, 64, min(self.HEIGHT, len(self.choices)) + 3)

    def pressed(self, event: events.Key) -> None:
        choices = self.found()
        if event.key == "escape":
            self.dismiss(None)
        elif event.key == "enter":
            self.dismiss(choices[self.index] if choices else None)
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

    def clicked(self, y: int) -> None:
        row, found = y - 2, self.found()
        first = max(0, min(self.index - self.HEIGHT // 2, len(found) - self.HEIGHT))
        if 0 <= row < self.HEIGHT and first + row < len(found):
            self.dismiss(found[first + row])


NAMES = 11
"""Width of the column of names, in cells."""
WIDEST = 100


class Consent(Dialog[bool]):
    """Lists everything that would run, in full: long values wrap, and `y` counts only with the last
    row on the screen. Without `lines` it says why the file cannot run."""

    def __init__(self, theme: Theme, why: str, lines: Sequence[PlanLine] = ()) -> None:
        """`why`: the reason for the new compile, or why there can be none."""
        super().__init__(theme)
        self.why = why
        self.lines = lines
        self.first = 0
        self.ready = False
        """Painted. Keys typed before that do not count."""

    def on_mount(self) -> None:
        self._fill()
        self.call_after_refresh(self._painted)

    def on_resize(self) -> None:
        self.first = 0
        self._fill()

    def _painted(self) -> None:
        self.ready = True

    @property
    def seen(self) -> bool:
        """Whether the last row is on the screen."""
        return self.first >= self.last

    def _fill(self) -> None:
        width, height = min(WIDEST, self.app.size.width), self.app.size.height
        head, body = self._head(width), self._body(width)
        room = max(1, height - len(head) - 3)
        self.last = max(0, len(body) - room)
        self.first = max(0, min(self.first, self.last))
        shown = body[self.first : self.first + room]
        lines = [*head, *shown, (), self._foot()]
        self.fill(_indented(lines), width, len(lines) + 1)

    def _head(self, width: int) -> list[Line]:
        if not self.lines:
            return [(("Nothing was run", "title"),), ()]
        said = (
            "The trace names all of this, and whoever made the trace may mean harm. It would run "
            "on this machine, as you."
        )
        asked: list[Line] = [(("Run this?  ", "title"), (plain(self.why)[: width - 20], "accent"))]
        return [*asked, *(((line, "dim"),) for line in wrap(said, width - 4)), ()]

    def _body(self, width: int) -> list[Line]:
        if not self.lines:
            return [((line, "text"),) for line in wrap(self.why, width - 4)]
        return [line for plan_line in self.lines for line in _lines(plan_line, width - 4)]

    def _foot(self) -> Line:
        if not self.lines:
            return (("esc ", "key"), ("back", "dim"))
        if not self.seen:
            left = f"{self.last - self.first} more below  "
            return (("j ", "key"), (left, "warn"), ("⏎ esc ", "key"), ("no", "dim"))
        return (("y ", "key"), ("run it  ", "dim"), ("⏎ esc ", "key"), ("no", "strong"))

    def pressed(self, event: events.Key) -> None:
        page = max(1, self.app.size.height // 2)
        by = {"down": 1, "j": 1, "up": -1, "k": -1, "pagedown": page, "space": page}
        by |= {"pageup": -page, "ctrl+d": page, "ctrl+u": -page}
        if event.key in by:
            self.scroll_rows(by[event.key])
        elif event.key == "y" and self.lines:
            if self.ready and self.seen:
                self.dismiss(True)
        else:
            self.dismiss(False)

    def scroll_rows(self, by: int) -> None:
        self.first += by
        self._fill()

    def on_mouse_scroll_down(self) -> None:
        self.scroll_rows(1)

    def on_mouse_scroll_up(self) -> None:
        self.scroll_rows(-1)


def _lines(line: PlanLine, width: int) -> list[Line]:
    """The whole value, then its note, on the same line if there is room."""
    room = max(10, width - NAMES)
    value: Role = "warn" if line.warns else "text"
    rows: list[Line] = [((one, value),) for one in _chopped(line.value, room)]
    note = plain(line.note)
    if width_of(rows[-1]) + 2 + cell_len(note) <= room:
        rows[-1] = (*rows[-1], (f"  {note}".rstrip(), "dim"))
    else:
        rows += [((one, "dim"),) for one in _chopped(note, room)]
    names = [line.name, *[""] * (len(rows) - 1)]
    return [((pad(name, NAMES), "key"), *row) for name, row in zip(names, rows, strict=True)]


def _chopped(words: str, width: int) -> list[str]:
    """Split into lines of `width` cells; unlike `wrap`, this keeps every blank."""
    return chop_cells(plain(words), width) or [""]
