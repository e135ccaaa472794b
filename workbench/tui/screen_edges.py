"""The lines at the edges of the screen: header, bar, timeline, footer; and that of text entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tcw.compiler.protocol.decision import APART, FUSE, split_id
from tcw.viewers.kit.spans import Span, width_of
from tcw.viewers.kit.theme import Theme, Tint
from tcw.viewers.panes import timeline
from tcw.viewers.panes.arrangement import PROFILES
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.workbench.tui.commands import Commands
from tcw.workbench.tui.hints import CHOOSE, DECIDE, HINTS, OVER, PAST, RUNNING, STAND, STEP, Hint
from tcw.workbench.tui.paint import exactly, fill, paint

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


@dataclass(frozen=True)
class Entered:
    """The text of the entry line after a key: still open, confirmed with `⏎`, or given up."""

    words: str
    settled: bool
    given_up: bool


class Entry(Widget, can_focus=True):
    """A line of text: a search, a file name, a number. Hidden until it is opened."""

    DEFAULT_CSS = "Entry { height: 1; width: 1fr; display: none; }"

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.prompt = ""
        self.words = ""
        self.note = ""
        self._changed: Callable[[Entered], object] = lambda entered: None

    def open(self, changed: Callable[[Entered], object], prompt: str = "", words: str = "") -> None:
        """`changed` is called after each key; `prompt`: what is asked for, "" for a search."""
        self._changed = changed
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
        self._changed(Entered(self.words, settled, given_up))


KEYS = {"-": "minus", "?": "question_mark", "←": "left", "↓": "down", "↑": "up", "→": "right"}
"""Key as shown -> Textual's name, where they differ."""
BADGES = {"✗": "break", "↻": "recompiles"}
"""Glyph of a count in the header -> its arrangement."""


def barred(rows: list[Row]) -> Lines:
    """The lines of a bar."""
    return [
        (
            Row(gutter=((" ", "text"),), body=row.body, right=row.right),
            "title" if row.heading else "",
        )
        for row in rows
    ]


def timeline_lines(view: View, arrangement: str, width: int) -> Lines:
    if width < 100 or view.presenting:
        return []
    above, below, right = timeline.timeline(view, width, arrangement)
    return [(Row(body=above), ""), (Row(body=below, right=right), "")]


def footer(note: str, hints: tuple[Hint, ...], commands: Commands, width: int) -> Lines:
    """The last message, else as many keys as fit."""
    ending: tuple[Span, ...] = (
        (commands.keys("help") + " ", "key"),
        ("help  ", "dim"),
        (commands.keys("palette") + " ", "key"),
        ("all commands ", "dim"),
    )
    if note:
        return [(Row(body=((" ", "text"), (note, "accent")), right=ending), "title")]
    spans: list[Span] = [(" ", "text")]
    used = 1 + sum(len(words) for words, _ in ending)
    for names, words in hints:
        key = commands.keys(names)
        size = len(key) + len(words) + 3
        if used + size > width:
            break
        used += size
        spans += [(key + " ", "key"), (words + "  ", "dim")]
    return [(Row(body=tuple(spans), right=ending), "title")]


def clicked(row: Row, commands: Commands, width: int, x: int) -> str:
    """Textual's name of the key in column `x` of a footer or bar; "" for none. The words after
    several keys stand for the first."""
    for start, spans in (
        (width_of(row.gutter), row.body),
        (width - width_of(row.right), row.right),
    ):
        at, keys = start, [""]
        for words, role in spans:
            end = at + cell_len(words)
            if role == "key":
                keys = words.split()
            elif role in ("turn", "button", "off"):
                keys = words.split()[:1]
            if at <= x < end:
                place = words[: x - at].count(" ") if role == "key" else 0
                return _key(keys[min(place, len(keys) - 1)], commands) if words.strip() else ""
            at = end
    return ""


def _key(shown: str, commands: Commands) -> str:
    """Textual's name of a key that is written `shown`."""
    named = (command.keys[0] for command in commands.all if command.shown == shown and command.keys)
    return next(named, KEYS.get(shown, shown))


def badge(row: Row, x: int) -> str:
    """The arrangement to open for a click on column `x` of the header: that of the count of breaks
    or recompiles there, else the overview."""
    at, about = 0, "overview"
    for words, _ in row.body:
        word = words.strip()
        counted = word[:1] in BADGES and word[1:].isdecimal()
        about = BADGES[word[0]] if counted else about if word.isalpha() else "overview"
        at += cell_len(words)
        if x < at:
            break
    return about


def _possible(view: View, hints: tuple[Hint, ...]) -> tuple[Hint, ...]:
    """Drop the keys for overrides if there is nothing to keep, undo or write."""
    missing = set() if view.overrides else {"undo", "write"}
    if view.overrides == view.kept:
        missing.add("keep")
    return tuple(hint for hint in hints if hint[0] not in missing)


def _answers(view: View) -> tuple[Hint, ...]:
    """The keys of an open decision, without the engine's own choice and those that a rule
    forbids."""
    asked = view.asked
    if asked is None or asked.kind != FUSE:
        return DECIDE
    idle = {asked.default, *(forbidden.choice for forbidden in asked.forbidden)}
    missing = {key for key, choice in (("veto", APART), ("force", FUSE)) if choice in idle}
    return tuple(hint for hint in DECIDE if hint[0] not in missing)


def hints(view: View, arrangement: str) -> tuple[Hint, ...]:
    """The keys that matter now, most useful first."""
    if view.playhead:
        return _answers(view) if view.asked is not None else PAST
    if not view.driven or arrangement in ("breakpoints", "overrides"):
        return _possible(view, HINTS[arrangement])
    waiting = view.waiting
    if waiting is None:
        return RUNNING
    if waiting.decision:
        return _answers(view) if split_id(waiting.decision)[1] == FUSE else CHOOSE
    if waiting.kind == "end":
        profile = arrangement in PROFILES and view.derived.profile is not None
        return HINTS[arrangement] if profile else _possible(view, OVER)
    return STEP if waiting.kind == "step" or waiting.stage == "capture" else STAND
