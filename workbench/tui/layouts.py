"""Which panes stand where, as the reader wants it: any pane in any place, closed, dragged wider."""

from __future__ import annotations

from dataclasses import replace

from viewers.panes.arrangement import ARRANGEMENTS, PANES, Arrangement, Column, Slot
from workbench.tui.overlay import Choice
from workbench.tui.pane import PaneView
from workbench.tui.revising import Revising

MOST = 4
"""Panes beside each other, at most."""
TITLES = {
    "loops-a": "loops of A", "loops-b": "loops of B", "source-step": "source of the step",
    "source-break": "source of the break", "growing": "growing graph",
    "growing-guards": "growing guards", "engine-a": "code of the first engine",
    "engine-b": "code of the second engine", "beside": "kernel in the other language",
    "became": "if fused", "why": "why it recompiled", "sides": "sides of the break",
    "picture": "picture of the graph", "profile-why": "why it won or lost",
    "region-eager": "eager operations", "region-compiled": "compiled steps",
    "kernel": "code", "fusion-narrow": "fusion",
}  # fmt: skip


def title_of(pane: str) -> str:
    return TITLES.get(pane, pane)


class Layouts(Revising):
    """Panes put, closed and sized by the reader."""

    def arrangement(self, name: str) -> Arrangement:
        """The reader's own, or the one that belongs to the name."""
        return self.own.get(name) or ARRANGEMENTS[name]

    def pane_choices(self) -> list[Choice]:
        """For the palette: every pane, in place of this one or beside it."""
        names = sorted({title_of(name): name for name in PANES}.items())
        here = [Choice(f"here:{name}", f"Show {title} here") for title, name in names]
        return here + [Choice(f"beside:{name}", f"Show {title} beside") for title, name in names]

    async def show_here(self, pane: str) -> None:
        """Put a pane in the place of the one in focus."""
        focus = self.focus_pane()
        if focus is None or focus is self.spine:
            self.say("go to a pane first: tab")
            return
        await self._lay_out(_put(self._present(), focus.pane, pane), pane)

    async def show_beside(self, pane: str) -> None:
        """Put a pane into a column of its own."""
        now = self._present()
        if sum(len(column.slots) for column in now.columns) >= MOST:
            self.say(f"{MOST} panes are the most: Show … here, or Z closes one")
            return
        columns = (*now.columns, Column((Slot(pane),), max(1, _mean_share(now))))
        await self._lay_out(replace(now, columns=columns, narrow=(*now.narrow, Slot(pane))), pane)

    async def do_close(self) -> None:
        focus = self.focus_pane()
        now = self._present()
        count = sum(len(column.slots) for column in now.columns) + (now.top is not None)
        if focus is None or focus is self.spine or count < 2:
            self.say("the last pane stays")
            return
        await self._lay_out(_without(now, focus.pane), "")

    async def do_reset(self) -> None:
        self.own.pop(self.navigator.arrangement, None)
        await self.rebuild()
        self.say("the panes are as they were")

    def _present(self) -> Arrangement:
        """What stands now: on a wide screen its wide columns."""
        now = self.arrangement(self.navigator.arrangement)
        return replace(now, columns=self.stage.columns_of(now, self.app.size.width), wide=())

    async def _lay_out(self, arrangement: Arrangement, focus: str) -> None:
        self.own[self.navigator.arrangement] = arrangement
        await self.rebuild()
        if focus:
            self._focus(focus)

    def on_pane_view_dragged(self, message: PaneView.Dragged) -> None:
        """The rule at the left of a pane, or its title row, is moved."""
        self.stage.drag(message.pane, message.by, message.down)


def _put(now: Arrangement, old: str, new: str) -> Arrangement:
    def changed(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
        return tuple(Slot(new, max(1, s.share)) if s.pane == old else s for s in slots)

    top = replace(now.top, pane=new) if now.top is not None and now.top.pane == old else now.top
    columns = tuple(replace(column, slots=changed(column.slots)) for column in now.columns)
    return replace(now, top=top, columns=columns, narrow=changed(now.narrow), focus=new)


def _without(now: Arrangement, pane: str) -> Arrangement:
    def kept(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
        left = tuple(slot for slot in slots if slot.pane != pane)
        if left and not any(slot.share for slot in left):
            left = (*left[:-1], replace(left[-1], share=1))
        return left

    columns = tuple(replace(column, slots=kept(column.slots)) for column in now.columns)
    columns = tuple(column for column in columns if column.slots)
    top = None if now.top is not None and now.top.pane == pane else now.top
    if not columns and top is not None:
        columns, top = (Column((Slot(top.pane),)),), None
    focus = now.focus if now.focus != pane else columns[0].slots[0].pane
    narrow = kept(now.narrow) or (columns[0].slots[0],)
    return replace(now, columns=columns, top=top, narrow=narrow, focus=focus)


def _mean_share(now: Arrangement) -> int:
    return sum(column.share for column in now.columns) // max(1, len(now.columns))
