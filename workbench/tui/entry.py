"""One line of text entry at the bottom of the screen: the search, a file name, a number."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tcw.viewers.kit.theme import Theme
from tcw.viewers.plain import plain
from tcw.workbench.tui.paint import exactly, fill


class Entry(Widget, can_focus=True):
    """Hidden until it is opened."""

    DEFAULT_CSS = "Entry { height: 1; width: 1fr; display: none; }"

    @dataclass(eq=False)
    class Changed(Message):
        """The text changed, was confirmed with `⏎` or cancelled with `esc`."""

        words: str
        settled: bool = False
        given_up: bool = False

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.prompt = ""
        self.words = ""
        self.note = ""

    def open(self, prompt: str = "", words: str = "") -> None:
        """`prompt`: what is asked for; "" for a search."""
        self.prompt, self.words, self.note = prompt, words, ""
        self.display = True
        self.focus()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        prompt = f" {self.prompt}: " if self.prompt else " / "
        body = ((plain(prompt), "key"), (plain(self.words), "text"), ("▏", "accent"))
        right = ((self.note + " ", "dim"),)
        return Strip(exactly(fill(body, right, width, self.theme), width, self.theme))  # type: ignore[arg-type]

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        settled, given_up = event.key == "enter", event.key == "escape"
        if event.key == "backspace":
            given_up = not self.words
            self.words = self.words[:-1]
        elif event.key == "ctrl+u":
            self.words = ""
        elif event.is_printable and event.character:
            self.words += event.character
        elif not settled and not given_up:
            return
        if settled or given_up:
            self.display = False
        self.refresh()
        self.post_message(self.Changed(self.words, settled, given_up))
