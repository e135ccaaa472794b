"""What widgets tell the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from compiler.trace.records import AnyRecord
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
    """The cursor is on another row."""


class Opened(PaneMessage):
    """`⏎` or a second click."""


class Delivered(Message):
    """The feed has read records; possibly none, the first time."""

    def __init__(self, records: list[AnyRecord]) -> None:
        super().__init__()
        self.records = records


class Unreadable(Message):
    """The file cannot be read any further."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why
