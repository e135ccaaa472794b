"""Moves the cursor, the focus, and between levels and findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, partialmethod

from tcw.viewers.panes.targets import ToFinding
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.pane import PaneView
from tcw.workbench.tui.screen_edges import Entered


def _in_pane(act: Callable[[PaneView], object]) -> Callable[[Moving], None]:
    """A method that acts on the pane in focus, if there is one."""

    def run(self: Moving) -> None:
        pane = self.desk.focus_pane()
        if pane is not None:
            act(pane)

    return run


class Moving(Controller):
    """Moves the cursor within a pane, and the focus between panes."""

    down = command("Move down", "j", "down")(_in_pane(lambda pane: pane.move(1)))
    up = command("Move up", "k", "up")(_in_pane(lambda pane: pane.move(-1)))
    scroll_left = command("Scroll left", "h", "left")(_in_pane(lambda pane: pane.scroll_cells(-8)))
    scroll_right = command("Scroll right", "l", "right")(
        _in_pane(lambda pane: pane.scroll_cells(8))
    )
    page_down = command("Move a page down", "pagedown", "ctrl+d", "space", shown="ctrl-d")(
        _in_pane(lambda pane: pane.move(pane.page - 1))
    )
    page_up = command("Move a page up", "pageup", "ctrl+u", shown="ctrl-u")(
        _in_pane(lambda pane: pane.move(1 - pane.page))
    )
    first = command("Go to the first row", "home", shown="gg")(
        _in_pane(lambda pane: pane.ends(False))
    )
    last = command("Go to the last row", "G")(_in_pane(lambda pane: pane.ends(True)))

    def _tab(self, by: int) -> None:
        panes = self.desk.panes()
        if panes:
            pane = self.desk.focus_pane()
            index = panes.index(pane) if pane in panes else -by
            self.desk.set_focus(panes[(index + by) % len(panes)])

    next_pane = command("Go to the next pane", "tab")(partialmethod(_tab, 1))
    previous_pane = command("Go to the previous pane", "shift+tab", shown="shift-tab")(
        partialmethod(_tab, -1)
    )

    def focus_number(self, number: int) -> None:
        """Focus the pane with this number, where there is one."""
        view = next((pane for pane in self.desk.panes() if pane.number == number), None)
        if view is not None:
            self.desk.set_focus(view)

    def focus_counterpart(self, pane: PaneView) -> None:
        """Go from a row that opens nothing to the next pane with a highlighted row."""
        panes = self.desk.stage.panes
        start = panes.index(pane) + 1 if pane in panes else 0
        for other in [*panes[start:], *panes[:start]]:
            if other is not pane and (
                other.lit or any(ref == self.view.ref for ref in other.content.refs)
            ):
                index = min(other.lit, default=other.cursor)
                self.desk.set_focus(other)
                if index >= 0:
                    other.go(index)
                return

    # Findings

    async def _finding(self, by: int) -> None:
        desk, navigator = self.desk, self.desk.navigator
        count = len(desk.view.summary.findings)
        if not count:
            desk.say("no finding")
            return
        at_overview = navigator.arrangement == "overview"
        arrangement = navigator.finding((desk.view.finding + by) % count)
        pane = desk.focus_pane()
        findings = next((p for p in desk.stage.panes if p.pane == "findings"), None)
        if at_overview and findings is not None:
            desk.set_focus(findings)
            findings.go_to(ToFinding(desk.view.finding))
        elif arrangement:
            navigator.show_finding(arrangement, pane.pane if pane else "")
            await desk.rebuild()
            desk.say(f"finding {desk.view.finding + 1} of {count}")

    next_finding = command("Go to the next finding", "e")(partialmethod(_finding, 1))
    previous_finding = command("Go to the previous finding", "E")(partialmethod(_finding, -1))


@dataclass(eq=False)
class Searching(Controller):
    """Finds a text in the rows of a pane."""

    needle: str = ""
    """What is searched for."""

    @command("Search in this pane", "slash", shown="/")
    def search(self) -> None:
        pane = self.desk.focus_pane()
        if pane is not None:
            self.desk.entry.open(partial(self._changed, pane))

    def _changed(self, pane: PaneView, entered: Entered) -> None:
        self.needle = "" if entered.given_up else entered.words
        if entered.settled or entered.given_up:
            self.desk.set_focus(pane)
        pane.needle = self.needle
        pane.refresh()
        if not self.needle:
            return
        index = pane.find(self.needle, pane.cursor if pane.cursor >= 0 else pane.top, 1)
        self.desk.entry.note = "" if index >= 0 else "not found"
        if index >= 0:
            self._hit(pane, index)
        elif entered.settled:
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
