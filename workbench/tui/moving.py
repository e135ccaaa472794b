"""Keys, and the commands that move: cursor, focus, search, counterparts, findings."""

from __future__ import annotations

from collections.abc import Callable

from textual import events

from workbench.tui.canvas import CanvasView
from workbench.tui.commands import BY_KEY
from workbench.tui.edge import Edge
from workbench.tui.entry import Entry
from workbench.tui.feed import Feed
from workbench.tui.messages import Moved, Opened
from workbench.tui.pane import PaneView
from workbench.tui.reading import Reading
from workbench.tui.theme import Theme


class Moving(Reading):
    """A command `name` of the table is the method `do_name`."""

    def __init__(self, feed: Feed, theme: Theme) -> None:
        super().__init__(feed, theme)
        self.searched: PaneView | None = None
        """The pane in which the search looks."""
        self._pending = ""
        """The first key of a sequence."""
        self._then: Callable[[str], object] | None = None
        """Who asked for the words in the entry line; None where it is the search."""
        self.offered = ""
        """A text that `y` copies while the footer speaks of it."""

    async def on_key(self, event: events.Key) -> None:
        if self.focused is self.entry:
            return
        if self.note:
            self.note = ""
            self.query_one("#footer", Edge).update()
        key = event.key
        event.stop()
        event.prevent_default()
        if key == "g" and self._pending != "g":
            self._pending = "g"
            return
        pending, self._pending = self._pending, ""
        if pending == "g" and key == "g":
            self.do_first()
        elif key.isdigit() and key != "0":
            panes = {pane.number: pane for pane in self.panes()}
            if int(key) in panes:
                self.set_focus(panes[int(key)])
        elif key in BY_KEY:
            await self.command(BY_KEY[key].name)

    async def command(self, name: str) -> None:
        """Run a command of the table."""
        self.other_key(name)
        offered, self.offered = self.offered, ""
        if offered and name == "copy":
            self.app.copy_to_clipboard(offered)
            self.say("copied")
            return
        pane = self.focus_pane()
        if isinstance(pane, CanvasView) and pane.command(name):
            return
        method: Callable[[], object] = getattr(self, f"do_{name}")
        result = method()
        if result is not None:
            await result  # type: ignore[misc]

    def _only_in_picture(self) -> None:
        """What only the picture of a graph can do, asked of another pane."""
        self.say("this is for the picture of a graph: focus it first")

    do_export = do_weights = do_unfold_all = _only_in_picture

    def other_key(self, name: str) -> None:
        """A command is about to run."""

    def offer(self, words: str) -> None:
        """Have the next `y` copy these words."""
        self.offered = words

    def ask_words(self, prompt: str, words: str, then: Callable[[str], object]) -> None:
        """Ask for a line of text; `then` gets it, unless `esc` gave it up."""
        self.searched, self._then = self.focus_pane(), then
        self.entry.open(prompt, words)

    def on_moved(self, message: Moved) -> None:
        self.navigator.moved(message.pane.pane, message.row)
        self.refresh_all()

    async def on_opened(self, message: Opened) -> None:
        await self._open(message.pane)

    async def _open(self, pane: PaneView) -> None:
        row = pane.row
        if self.navigator.opened(row, pane.pane):
            await self.rebuild()
        elif row.ref or row.key:
            self._focus_counterpart(pane)

    def _focus_counterpart(self, pane: PaneView) -> None:
        """From a row that leads nowhere deeper, `⏎` goes to the next pane that is lit."""
        panes = self.stage.panes
        start = panes.index(pane) + 1 if pane in panes else 0
        for other in [*panes[start:], *panes[:start]]:
            if other is not pane and (
                other.lit or any(ref == self.view.ref for ref in other.content.refs)
            ):
                index = min(other.lit, default=other.cursor)
                self.set_focus(other)
                if index >= 0:
                    other.go(index)
                return

    def on_entry_changed(self, message: Entry.Changed) -> None:
        pane = self.searched
        if self._then is not None:
            if message.settled or message.given_up:
                then, self._then = self._then, None
                self.set_focus(pane)
                if message.settled:
                    then(message.words)
            return
        self.needle = "" if message.given_up else message.words
        if message.settled or message.given_up:
            self.set_focus(pane)
        if pane is not None:
            pane.needle = self.needle
            pane.refresh()
        if pane is not None and self.needle:
            index = pane.find(self.needle, pane.cursor if pane.cursor >= 0 else pane.top, 1)
            self.entry.note = "" if index >= 0 else "not found"
            if index >= 0:
                self._hit(pane, index)
            elif message.settled:
                self.say(f"no row of this pane has “{self.needle}”")

    def _hit(self, pane: PaneView, index: int) -> None:
        pane.spot = index
        if pane.rows[index].key:
            pane.go(index)
        else:
            pane.show(index)
        pane.refresh()

    def _move(self, by: int) -> None:
        pane = self.focus_pane()
        if pane is not None:
            pane.move(by)

    def do_down(self) -> None:
        self._move(1)

    def do_up(self) -> None:
        self._move(-1)

    def do_page_down(self) -> None:
        pane = self.focus_pane()
        self._move(pane.page - 1 if pane else 1)

    def do_page_up(self) -> None:
        pane = self.focus_pane()
        self._move(1 - pane.page if pane else -1)

    def do_scroll_left(self) -> None:
        pane = self.focus_pane()
        if pane is not None:
            pane.scroll_cells(-8)

    def do_scroll_right(self) -> None:
        pane = self.focus_pane()
        if pane is not None:
            pane.scroll_cells(8)

    def do_first(self) -> None:
        pane = self.focus_pane()
        if pane is not None:
            pane.ends(False)

    def do_last(self) -> None:
        pane = self.focus_pane()
        if pane is not None:
            pane.ends(True)

    async def do_open(self) -> None:
        pane = self.focus_pane()
        if pane is not None and pane.cursor >= 0:
            await self._open(pane)

    async def do_back(self) -> None:
        if self.zoomed:
            self.zoomed = ""
            await self.rebuild()
            return
        if self.needle:
            self.needle = ""
            for pane in self.panes():
                pane.needle, pane.spot = "", -1
                pane.refresh()
        stop = self.navigator.back()
        if stop is not None:
            await self.rebuild()
            self._focus(stop.focus)

    def _tab(self, by: int) -> None:
        panes = self.panes()
        if panes:
            pane = self.focus_pane()
            index = panes.index(pane) if pane in panes else -by
            self.set_focus(panes[(index + by) % len(panes)])

    def do_next_pane(self) -> None:
        self._tab(1)

    def do_previous_pane(self) -> None:
        self._tab(-1)

    async def do_zoom(self) -> None:
        pane = self.focus_pane()
        if pane is not None and pane is not self.spine:
            self.zoomed = "" if self.zoomed else pane.pane
            focus = pane.pane
            await self.rebuild()
            self._focus(focus)

    async def do_layout(self) -> None:
        self.turned = not self.turned
        pane = self.focus_pane()
        await self.rebuild()
        self._focus(pane.pane if pane else "")

    def _share(self, by: int) -> None:
        pane = self.focus_pane()
        if pane is not None and pane is not self.spine:
            self.stage.resize(pane, by)

    def do_wider(self) -> None:
        self._share(1)

    def do_narrower(self) -> None:
        self._share(-1)

    def do_search(self) -> None:
        self.searched = self.focus_pane()
        if self.searched is not None:
            self.entry.open()

    def _next(self, by: int) -> None:
        pane = self.focus_pane()
        if pane is None:
            return
        if self.needle:
            start = (pane.spot if pane.spot >= 0 else pane.cursor) + by
            index = pane.find(self.needle, start, by)
            if index >= 0:
                self._hit(pane, index)
            return
        spots = [(p, i) for p in self.stage.panes if p is not pane for i in sorted(p.lit)]
        if not spots:
            self.say("nothing that is shown has a counterpart here")
            return
        at = next((n for n, (p, i) in enumerate(spots) if p.spot == i), -1 if by > 0 else 0)
        for other in self.stage.panes:
            other.spot = -1
        other, index = spots[(at + by) % len(spots)]
        other.spot = index
        other.show(index)
        for shown in self.stage.panes:
            shown.refresh()
        self.say(f"counterpart {(at + by) % len(spots) + 1} of {len(spots)}")

    def do_next_hit(self) -> None:
        self._next(1)

    def do_previous_hit(self) -> None:
        self._next(-1)

    async def _finding(self, by: int) -> None:
        count = len(self.view.summary.findings)
        if not count:
            self.say("no finding")
            return
        at_overview = self.navigator.arrangement == "overview"
        arrangement = self.navigator.finding((self.view.finding + by) % count)
        pane = self.focus_pane()
        findings = next((p for p in self.stage.panes if p.pane == "findings"), None)
        if at_overview and findings is not None:
            self.set_focus(findings)
            index = findings._find(f"finding:{self.view.finding}")
            findings.go(index)
        elif arrangement:
            self.navigator.show_finding(arrangement, pane.pane if pane else "")
            await self.rebuild()
            self.say(f"finding {self.view.finding + 1} of {count}")

    async def do_next_finding(self) -> None:
        await self._finding(1)

    async def do_previous_finding(self) -> None:
        await self._finding(-1)
