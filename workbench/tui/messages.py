"""Messages from widgets to the screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.panes.rows import Row

if TYPE_CHECKING:
    from tcw.workbench.tui.pane import PaneView


@dataclass(eq=False)
class PaneMessage(Message):
    """Something happened on a row of a pane."""

    pane: PaneView
    row: Row


class Moved(PaneMessage):
    """The cursor is on another row."""


class Opened(PaneMessage):
    """`⏎` or a second click."""


@dataclass(eq=False)
class Delivered(Message):
    """The feed has read records; possibly none, the first time."""

    records: list[AnyRecord]


@dataclass(eq=False)
class Unreadable(Message):
    """The file cannot be read any further."""

    why: str
