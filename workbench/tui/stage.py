"""The middle of the screen: panes in columns, by arrangement and width."""

from __future__ import annotations

from collections.abc import Callable

from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from viewers.panes.arrangement import ARRANGEMENTS, PANES, Arrangement, Column, Slot
from viewers.panes.rows import Content
from viewers.panes.view import View
from workbench.tui.canvas import CanvasView
from workbench.tui.pane import PaneView
from workbench.tui.theme import Theme

NARROW, FULL, WIDE = 100, 150, 180
"""Widths in cells: below NARROW panes are stacked without a spine; from FULL on the spine has its
stages; from WIDE on an arrangement may have more columns."""
SPINE, SPINE_FULL = 11, 32


def spine_width(arrangement: str, width: int, zoomed: bool) -> int:
    """Cells for the spine; 0 where it would take the room of a third column."""
    if width < NARROW or zoomed:
        return 0
    if width >= FULL:
        return SPINE_FULL
    return SPINE if len(ARRANGEMENTS[arrangement].columns) < 3 else 0


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

    async def show(self, name: str, width: int, turned: bool, zoomed: str, first: int) -> None:
        """Put the panes of an arrangement up; `first` is the number of the first of them."""
        await self.remove_children()
        self.panes, self.slots, self.columns = [], {}, {}
        arrangement = ARRANGEMENTS[name]
        spine = spine_width(name, width, bool(zoomed)) > 0
        for widget in self._build(arrangement, width, turned, zoomed, spine):
            await self.mount(widget)
        for number, pane in enumerate(self.panes, start=first):
            pane.number = number

    def _build(
        self, arrangement: Arrangement, width: int, turned: bool, zoomed: str, spine: bool
    ) -> list[Widget]:
        if zoomed:
            return [self._pane(Slot(zoomed), False)]
        if width < NARROW:
            return [self._pane(slot, False) for slot in arrangement.narrow]
        columns = arrangement.wide if width >= WIDE and arrangement.wide else arrangement.columns
        top: list[Widget] = [self._pane(arrangement.top, spine)] if arrangement.top else []
        if turned:
            return top + [self._pane(slot, spine) for column in columns for slot in column.slots]
        row = Horizontal(*(self._column(c, spine or i > 0) for i, c in enumerate(columns)))
        return [*top, row]

    def _column(self, column: Column, rule: bool) -> Vertical:
        panes = [self._pane(slot, rule) for slot in column.slots]
        holder = Vertical(*panes)
        holder.styles.width = f"{column.share}fr"
        for pane in panes:
            self.columns[pane] = holder
        return holder

    def _pane(self, slot: Slot, rule: bool) -> PaneView:
        def make(width: int) -> Content:
            return PANES[slot.pane](self._view(), width)

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
        else:
            pane.styles.height = f"{value:.2f}fr"
