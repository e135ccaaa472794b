"""Moves the cursor, the focus, and between levels and findings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod

from tcw.viewers.panes.targets import ToFinding
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.pane import PaneView


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
        found = next((pane for pane in self.desk.panes() if pane.number == number), None)
        if found is not None:
            self.desk.set_focus(found)

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
