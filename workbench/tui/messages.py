"""What widgets tell the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from viewers.panes.rows import Row

if TYPE_CHECKING:
    from workbench.tui.pane import PaneView


class PaneMessage(Message):
    """Something happened on a row of a pane."""

    def __init__(self, pane: PaneView, row: Row) -> None:
        super().__init__()
        self.pane = pane
        self.row = row


class Moved(PaneMessage):
    """The cursor stands on another row."""


class Opened(PaneMessage):
    """`⏎` or a second click."""


class Grew(Message):
    """Records were read; `whole` says that the file was read to its present end."""

    def __init__(self, count: int, whole: bool) -> None:
        super().__init__()
        self.count = count
        self.whole = whole
