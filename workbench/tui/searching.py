"""The search in a pane, the steps between counterparts, and the entry line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partialmethod

from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.entry import Entry
from tcw.workbench.tui.pane import PaneView


@dataclass(eq=False)
class Searching(Controller):
    """Owns the entry line: for a search, or for another controller's question."""

    entry: Entry
    needle: str = ""
    """What is searched for."""
    _pane: PaneView | None = None
    """The searched pane, which gets the focus back."""
    _then: Callable[[str], object] | None = None
    """Gets the entered text; None during a search."""

    def ask_words(self, prompt: str, words: str, then: Callable[[str], object]) -> None:
        """Ask for a line of text and pass it to `then`; `esc` cancels."""
        self._pane, self._then = self.desk.focus_pane(), then
        self.entry.open(prompt, words)

    @command("Search in this pane", "slash", shown="/")
    def search(self) -> None:
        self._pane = self.desk.focus_pane()
        if self._pane is not None:
            self.entry.open()

    def changed(self, message: Entry.Changed) -> None:
        """The text of the entry line changed, or was confirmed or cancelled."""
        pane = self._pane
        if self._then is not None:
            if message.settled or message.given_up:
                then, self._then = self._then, None
                self.desk.set_focus(pane)
                if message.settled:
                    then(message.words)
            return
        self.needle = "" if message.given_up else message.words
        if message.settled or message.given_up:
            self.desk.set_focus(pane)
        if pane is not None:
            pane.needle = self.needle
            pane.refresh()
        if pane is not None and self.needle:
            index = pane.find(self.needle, pane.cursor if pane.cursor >= 0 else pane.top, 1)
            self.entry.note = "" if index >= 0 else "not found"
            if index >= 0:
                self._hit(pane, index)
            elif message.settled:
                self.desk.say(f"no row of this pane has “{self.needle}”")

    def forget(self) -> bool:
        """End the search; False if there was none."""
        if not self.needle:
            return False
        self.needle = ""
        for pane in self.desk.panes():
            pane.needle, pane.spot = "", -1
            pane.refresh()
        return True

    def _hit(self, pane: PaneView, index: int) -> None:
        pane.spot = index
        if pane.rows[index].key:
            pane.go(index)
        else:
            pane.show(index)
        pane.refresh()

    def _next(self, by: int) -> None:
        pane = self.desk.focus_pane()
        if pane is None:
            return
        if self.needle:
            start = (pane.spot if pane.spot >= 0 else pane.cursor) + by
            index = pane.find(self.needle, start, by)
            if index >= 0:
                self._hit(pane, index)
            return
        if self.desk.navigator.arrangement == "differences":
            self.desk.say(self.desk.navigator.step(by, pane.pane))
            self.desk.refresh_all()
            return
        panes = self.desk.stage.panes
        spots = [(p, i) for p in panes if p is not pane for i in sorted(p.lit)]
        if not spots:
            self.desk.say("nothing that is shown has a counterpart here")
            return
        at = next((n for n, (p, i) in enumerate(spots) if p.spot == i), -1 if by > 0 else 0)
        for other in panes:
            other.spot = -1
        other, index = spots[(at + by) % len(spots)]
        other.spot = index
        other.show(index)
        for shown in panes:
            shown.refresh()
        self.desk.say(f"counterpart {(at + by) % len(spots) + 1} of {len(spots)}")

    next_hit = command("Go to the next hit or counterpart", "n")(partialmethod(_next, 1))
    previous_hit = command("Go to the previous hit or counterpart", "N")(partialmethod(_next, -1))
