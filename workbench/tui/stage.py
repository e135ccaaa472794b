"""The middle of the screen: panes in columns, by arrangement and width."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from tcw.viewers.kit.theme import Theme
from tcw.viewers.panes import notes
from tcw.viewers.panes.arrangement import PANES, Arrangement, Column, Slot
from tcw.viewers.panes.rows import Content, empty, without_ids
from tcw.viewers.panes.view import View
from tcw.workbench.tui.canvas import CanvasView
from tcw.workbench.tui.pane import PaneView

NARROW, FULL, WIDE = 100, 150, 180
"""Widths in cells: below NARROW panes are stacked without a spine; from FULL on the spine has its
stages; from WIDE on an arrangement may have more columns."""
SPINE, SPINE_FULL = 11, 32
ROOMY = 30
"""Screens of at least this many lines show an audience a blank line between rows."""


CLOSE = "source", "memory", "what-if", "picture", "profile", "region", "account"
"""Panes, by the start of their names, whose rows stay together even then."""


def spine_width(arrangement: Arrangement, width: int, zoomed: bool) -> int:
    """Width of the spine in cells; 0 if it would take the room of a third column."""
    if width < NARROW or zoomed:
        return 0
    if width >= FULL:
        return SPINE_FULL
    return SPINE if len(arrangement.columns) < 3 else 0


def _failed(pane: str, error: Exception, width: int) -> Content:
    """The content of a pane that could not be made; other panes and the compile are not
    affected."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" at {last[0].filename}:{last[0].lineno}" if last else ""
    words = f"tcw could not show this: {type(error).__name__}: {error}{where}"
    return Content(pane, rows=empty(width, words, "please report it, with the trace"))


class Stage(Vertical):
    """Holds the panes of one arrangement."""

    DEFAULT_CSS = "Stage { width: 1fr; height: 1fr; } Stage Horizontal { height: 1fr; }"

    def __init__(self, view: Callable[[], View], theme: Callable[[], Theme]) -> None:
        super().__init__()
        self._view = view
        self._theme = theme
        self.panes: list[PaneView] = []
        self._slots: dict[PaneView, Slot] = {}

    async def show(self, arrangement: Arrangement, width: int, zoomed: str, first: int) -> None:
        """Show the panes of an arrangement, numbered from `first`. Does nothing on a screen that
        closes during one of the waits here."""
        await self.remove_children()
        self.panes, self._slots = [], {}
        presenting = self._view().presenting
        spine = spine_width(arrangement, width, bool(zoomed) or presenting) > 0
        for widget in self._build(arrangement, width, zoomed, spine):
            if not self.is_attached:
                return
            await self.mount(widget)
        for number, pane in enumerate(self.panes, start=first):
            pane.number = 0 if presenting else number
            roomy = presenting and not pane.pane.startswith(CLOSE)
            pane.spacing = 2 if roomy and self.app.size.height >= ROOMY else 1

    def _build(
        self, arrangement: Arrangement, width: int, zoomed: str, spine: bool
    ) -> list[Widget]:
        if zoomed:
            return [self._pane(Slot(zoomed), False)]
        if width < NARROW:
            return [self._pane(slot, False) for slot in arrangement.narrow]
        wide = width >= WIDE and arrangement.wide
        top: list[Widget] = [self._pane(arrangement.top, spine)] if arrangement.top else []
        columns = (
            self._column(column, spine or number > 0)
            for number, column in enumerate(wide or arrangement.columns)
        )
        return [*top, Horizontal(*columns)]

    def _column(self, column: Column, rule: bool) -> Vertical:
        holder = Vertical(*(self._pane(slot, rule) for slot in column.slots))
        holder.styles.width = f"{column.share}fr"
        return holder

    def _pane(self, slot: Slot, rule: bool) -> PaneView:
        def make(width: int) -> Content:
            view = self._view()
            view.beside = frozenset(pane.pane for pane in self.panes)
            try:
                content = notes.marked(view, PANES[slot.pane](view, width), width)
                return without_ids(content) if view.presenting else content
            except Exception as error:
                if self.app.is_headless:
                    raise
                return _failed(slot.pane, error, width)

        kind = CanvasView if slot.pane == "picture" else PaneView
        pane = kind(slot.pane, make, self._theme(), rule=rule)
        pane.styles.height = slot.lines or f"{max(1, slot.share)}fr"
        self.panes.append(pane)
        self._slots[pane] = slot
        return pane

    def fit(self, pane: PaneView) -> None:
        """A pane whose slot has no share is as high as its rows, within half of the stage."""
        slot = self._slots.get(pane, Slot(""))
        if slot.share or slot.lines or len(self.panes) == 1:
            return
        height = min(len(pane.rows) + 1, max(4, self.size.height * 55 // 100))
        if pane.size.height != height:
            pane.styles.height = height
