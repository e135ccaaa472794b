"""The middle of the screen: panes in columns, by arrangement and width."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace

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
LEAST_WIDTH, LEAST_HEIGHT = 10, 3
"""The least size, in cells, of a pane whose neighbour is dragged."""


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
        self.slots: dict[PaneView, Slot] = {}
        self.columns: dict[PaneView, Vertical] = {}
        self.shares: dict[str, list[float]] = {}
        """Arrangement -> shares of the width, by column, if the reader changed them."""
        self._arrangement = ""

    async def show(
        self, name: str, arrangement: Arrangement, width: int, turned: bool, zoomed: str, first: int
    ) -> None:
        """Show the panes of an arrangement, numbered from `first`. Does nothing on a screen that
        closes during one of the waits here."""
        await self.remove_children()
        self.panes, self.slots, self.columns = [], {}, {}
        self._arrangement = name
        presenting = self._view().presenting
        spine = spine_width(arrangement, width, bool(zoomed) or presenting) > 0
        for widget in self._build(arrangement, width, turned, zoomed, spine):
            if not self.is_attached:
                return
            await self.mount(widget)
        shares = self.shares.get(name, [])
        if shares and len(shares) == len(self._holders()):
            self._share_width(shares)
        for number, pane in enumerate(self.panes, start=first):
            pane.number = 0 if presenting else number
            roomy = presenting and not pane.pane.startswith(CLOSE)
            pane.spacing = 2 if roomy and self.app.size.height >= ROOMY else 1

    def _build(
        self, arrangement: Arrangement, width: int, turned: bool, zoomed: str, spine: bool
    ) -> list[Widget]:
        if zoomed:
            return [self._pane(Slot(zoomed), False)]
        if width < NARROW:
            return [self._pane(slot, False) for slot in arrangement.narrow]
        columns = self.columns_of(arrangement, width)
        top: list[Widget] = [self._pane(arrangement.top, spine)] if arrangement.top else []
        if turned:
            return top + [self._pane(slot, spine) for column in columns for slot in column.slots]
        row = Horizontal(*(self._column(c, spine or i > 0) for i, c in enumerate(columns)))
        return [*top, row]

    @staticmethod
    def columns_of(arrangement: Arrangement, width: int) -> tuple[Column, ...]:
        """The columns for a width in cells."""
        return arrangement.wide if width >= WIDE and arrangement.wide else arrangement.columns

    def _column(self, column: Column, rule: bool) -> Vertical:
        panes = [self._pane(slot, rule) for slot in column.slots]
        holder = Vertical(*panes)
        holder.styles.width = f"{column.share}fr"
        for pane in panes:
            self.columns[pane] = holder
        return holder

    def _pane(self, slot: Slot, rule: bool) -> PaneView:
        def make(width: int) -> Content:
            view = self._view()
            view.beside = frozenset(pane.pane for pane in self.panes)
            try:
                found = notes.marked(view, PANES[slot.pane](view, width), width)
                return without_ids(found) if view.presenting else found
            except Exception as error:
                if self.app.is_headless:
                    raise
                return _failed(slot.pane, error, width)

        kind = CanvasView if slot.pane == "picture" else PaneView
        pane = kind(slot.pane, make, self._theme(), rule=rule)
        pane.styles.height = slot.lines or f"{max(1, slot.share)}fr"
        self.panes.append(pane)
        self.slots[pane] = slot
        return pane

    def fit(self, pane: PaneView) -> None:
        """A pane whose slot has no share is as high as its rows, within half of the stage."""
        slot = self.slots.get(pane, Slot(""))
        if slot.share or slot.lines or len(self.panes) == 1:
            return
        height = min(len(pane.rows) + 1, max(4, self.size.height * 55 // 100))
        if pane.size.height != height:
            pane.styles.height = height

    def resize(self, pane: PaneView, by: int) -> None:
        """Give a pane's column more or less room; in a single column, the pane itself."""
        holder: Widget = self.columns.get(pane, pane)
        horizontal = pane in self.columns and len(set(self.columns.values())) > 1
        scalar = holder.styles.width if horizontal else pane.styles.height
        if scalar is None:
            return
        value = scalar.value * (1.15 if by > 0 else 1 / 1.15)
        if horizontal:
            holder.styles.width = f"{value:.2f}fr"
            widths = [one.styles.width for one in self._holders()]
            self.shares[self._arrangement] = [width.value if width else 1.0 for width in widths]
        else:
            pane.styles.height = f"{value:.2f}fr"

    def drag(self, pane: PaneView, by: int, down: bool) -> None:
        """Move the rule at the left of a pane by some cells; `down`: its title row."""
        if down:
            self._drag_down(pane, by)
            return
        holders = self._holders()
        at = holders.index(self.columns[pane]) if pane in self.columns else 0
        widths = [float(holder.size.width) for holder in holders]
        if at and min(widths[at - 1] + by, widths[at] - by) >= LEAST_WIDTH:
            widths[at - 1] += by
            widths[at] -= by
            self._share_width(widths)
            self.shares[self._arrangement] = widths

    def _drag_down(self, pane: PaneView, by: int) -> None:
        mine = [one for one in self.panes if self.columns.get(one) is self.columns.get(pane)]
        at = mine.index(pane)
        heights = [one.size.height for one in mine]
        if at and min(heights[at - 1] + by, heights[at] - by) >= LEAST_HEIGHT:
            heights[at - 1] += by
            heights[at] -= by
            for one, height in zip(mine, heights, strict=True):
                one.styles.height = f"{height}fr"
                self.slots[one] = replace(self.slots[one], share=1)

    def _holders(self) -> list[Vertical]:
        return list(dict.fromkeys(self.columns.values()))

    def _share_width(self, widths: list[float]) -> None:
        for holder, width in zip(self._holders(), widths, strict=True):
            holder.styles.width = f"{width:.2f}fr"
