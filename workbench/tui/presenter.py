"""The presenter's layout: for a room full of people."""

from __future__ import annotations

from workbench.tui.layouts import Layouts


class Presenting(Layouts):
    """`p`: no spine, no timeline, no ids; a few lines of source, two panes, twice the space."""

    async def do_presenter(self) -> None:
        self.view.presenting = not self.view.presenting
        self.zoomed = ""
        await self.rebuild()
        if not self.view.presenting:
            self.say("all of the screen again")
