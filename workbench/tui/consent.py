"""Asks before running the code that a trace names; only `y` runs it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells
from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from tcw.viewers.kit.cells import pad, wrap
from tcw.viewers.kit.spans import Line, Role, width_of
from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes.rows import BLANK, Row
from tcw.viewers.plain import plain
from tcw.workbench.tui.again import Thing
from tcw.workbench.tui.overlay import Sheet

NAMES = 11
"""Width of the column of names, in cells."""
WIDEST = 100


class Consent(ModalScreen[bool]):
    """Lists everything that would run, in full: long values wrap, and `y` counts only with the last
    row on the screen. Without `things` it says why the file cannot run."""

    DEFAULT_CSS = "Consent { align: center middle; background: $background 0%; }"

    def __init__(self, theme: Theme, why: str, things: Sequence[Thing] = ()) -> None:
        """`why`: the reason for the new compile, or why there can be none."""
        super().__init__()
        self.theme = theme
        self.why = why
        self.things = things
        self.first = 0
        self.ready = False
        """Painted. Keys typed before that do not count."""

    def compose(self) -> ComposeResult:
        self.sheet = Sheet(self.theme, 1, 1)
        yield self.sheet

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
        rows: list[tuple[Row, Tint]] = [(BLANK, "title")]
        rows += [(Row(gutter=(("  ", "text"),), body=line), "title") for line in lines]
        self.sheet.styles.width = width
        self.sheet.styles.height = min(height, len(rows))
        self.sheet.rows = rows
        self.sheet.refresh()

    def _head(self, width: int) -> list[Line]:
        if not self.things:
            return [(("Nothing was run", "title"),), ()]
        said = (
            "The trace names all of this, and whoever made the trace may mean harm. It would run "
            "on this machine, as you."
        )
        asked: list[Line] = [(("Run this?  ", "title"), (plain(self.why)[: width - 20], "accent"))]
        return [*asked, *(((one, "dim"),) for one in wrap(said, width - 4)), ()]

    def _body(self, width: int) -> list[Line]:
        if not self.things:
            return [((one, "text"),) for one in wrap(self.why, width - 4)]
        return [line for one in self.things for line in _lines(one, width - 4)]

    def _foot(self) -> Line:
        if not self.things:
            return (("esc ", "key"), ("back", "dim"))
        if not self.seen:
            left = f"{self.last - self.first} more below  "
            return (("j ", "key"), (left, "warn"), ("⏎ esc ", "key"), ("no", "dim"))
        return (("y ", "key"), ("run it  ", "dim"), ("⏎ esc ", "key"), ("no", "strong"))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        page = max(1, self.app.size.height // 2)
        by = {"down": 1, "j": 1, "up": -1, "k": -1, "pagedown": page, "space": page}
        by |= {"pageup": -page, "ctrl+d": page, "ctrl+u": -page}
        if event.key in by:
            self.scroll_rows(by[event.key])
        elif event.key == "y" and self.things:
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

    def on_click(self, event: events.Click) -> None:
        widget, _ = self.get_widget_at(event.screen_x, event.screen_y)
        if widget is not self.sheet:
            self.dismiss(False)


def _lines(thing: Thing, width: int) -> list[Line]:
    """The whole value of a thing, then its note, on the same line if there is room."""
    room = max(10, width - NAMES)
    value: Role = "warn" if thing.warns else "text"
    rows: list[Line] = [((one, value),) for one in _chopped(thing.value, room)]
    note = plain(thing.note)
    if width_of(rows[-1]) + 2 + cell_len(note) <= room:
        rows[-1] = (*rows[-1], (f"  {note}".rstrip(), "dim"))
    else:
        rows += [((one, "dim"),) for one in _chopped(note, room)]
    names = [thing.name, *[""] * (len(rows) - 1)]
    return [((pad(name, NAMES), "key"), *row) for name, row in zip(names, rows, strict=True)]


def _chopped(words: str, width: int) -> list[str]:
    """Split into lines of `width` cells; unlike `wrap`, this keeps every blank."""
    return chop_cells(plain(words), width) or [""]
