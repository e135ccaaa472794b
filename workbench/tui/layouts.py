"""The reader's own layouts: any pane in any place, panes closed, columns resized."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial, partialmethod

from tcw.viewers.panes.arrangement import ARRANGEMENTS, PANES, Arrangement, Column, Slot
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.overlay import PaletteChoice

MOST = 4
"""The most panes on one screen."""
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


@dataclass(eq=False)
class Layouts(Controller):
    """Places, closes and resizes panes."""

    own: dict[str, Arrangement] = field(default_factory=dict)
    """Name of an arrangement -> the reader's version of it."""
    turned: bool = False
    """Whether columns are shown as rows."""
    zoomed: str = ""
    """The zoomed pane, "" for none."""

    def arrangement(self, name: str) -> Arrangement:
        """The reader's version, else the default."""
        return self.own.get(name) or ARRANGEMENTS[name]

    @command("Zoom this pane", "z")
    async def zoom(self) -> None:
        pane = self.desk.focus_pane()
        if pane is not None and pane is not self.desk.spine:
            self.zoomed = "" if self.zoomed else pane.pane
            focus = pane.pane
            await self.desk.rebuild()
            self.desk.focus_on(focus)

    async def leave_zoom(self) -> bool:
        """Show all panes again; False if none was zoomed."""
        if not self.zoomed:
            return False
        self.zoomed = ""
        await self.desk.rebuild()
        return True

    @command("Turn the layout: columns or rows", "vertical_line", shown="|")
    async def layout(self) -> None:
        self.turned = not self.turned
        focus = self.desk.focus_name
        await self.desk.rebuild()
        self.desk.focus_on(focus)

    def _share(self, by: int) -> None:
        pane = self.desk.focus_pane()
        if pane is not None and pane is not self.desk.spine:
            self.desk.stage.resize(pane, by)

    wider = command("Give this pane more room", "plus", "equals_sign", shown="+")(
        partialmethod(_share, 1)
    )
    narrower = command("Give this pane less room", "minus", shown="−")(partialmethod(_share, -1))

    def pane_choices(self) -> list[PaletteChoice]:
        """For the palette: every pane, in place of this one or beside it."""
        names = sorted({title_of(name): name for name in PANES}.items())
        here = [
            PaletteChoice(f"Show {title} here", partial(self.show_here, name))
            for title, name in names
        ]
        return here + [
            PaletteChoice(f"Show {title} beside", partial(self.show_beside, name))
            for title, name in names
        ]

    async def show_here(self, pane: str) -> None:
        """Put a pane in the place of the one in focus."""
        focus = self.desk.focus_pane()
        if focus is None or focus is self.desk.spine:
            self.desk.say("go to a pane first: tab")
            return
        await self._lay_out(_put(self._present(), focus.pane, pane), pane)

    async def show_beside(self, pane: str) -> None:
        """Put a pane into a column of its own."""
        now = self._present()
        if sum(len(column.slots) for column in now.columns) >= MOST:
            self.desk.say(f"at most {MOST} panes: Show … here, or close one with Z")
            return
        columns = (*now.columns, Column((Slot(pane),), max(1, _mean_share(now))))
        await self._lay_out(replace(now, columns=columns, narrow=(*now.narrow, Slot(pane))), pane)

    @command("Close this pane", "Z")
    async def close(self) -> None:
        focus = self.desk.focus_pane()
        now = self._present()
        count = sum(len(column.slots) for column in now.columns) + (now.top is not None)
        if focus is None or focus is self.desk.spine or count < 2:
            self.desk.say("the last pane stays")
            return
        await self._lay_out(_without(now, focus.pane), "")

    @command("Put the panes back as they were")
    async def reset(self) -> None:
        self.own.pop(self.desk.navigator.arrangement, None)
        await self.desk.rebuild()
        self.desk.say("the panes are as they were")

    def _present(self) -> Arrangement:
        """The current layout: on a wide screen its wide columns."""
        now = self.arrangement(self.desk.navigator.arrangement)
        return replace(
            now, columns=self.desk.stage.columns_of(now, self.desk.app.size.width), wide=()
        )

    async def _lay_out(self, arrangement: Arrangement, focus: str) -> None:
        self.own[self.desk.navigator.arrangement] = arrangement
        await self.desk.rebuild()
        if focus:
            self.desk.focus_on(focus)

    # For a room full of people

    @command("Present: few large panes", "p")
    async def presenter(self) -> None:
        """No spine, no timeline, no ids; a few lines of source, two panes, twice the space."""
        self.view.presenting = not self.view.presenting
        self.zoomed = ""
        await self.desk.rebuild()
        if not self.view.presenting:
            self.desk.say("all of the screen again")


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
