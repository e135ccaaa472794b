"""The screen as its controllers see it: regions, focus, and what is said to and asked of the
reader. It paints; what a key does is in a controller, which calls it `desk`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from tcw.compiler.trace.provenance import Provenance
from tcw.viewers.kit.theme import THEMES, Theme, ThemeName
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes import chrome
from tcw.viewers.panes.arrangement import ARRANGEMENTS, presented
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tcw.workbench.tui import screen_edges
from tcw.workbench.tui.commands import Commands
from tcw.workbench.tui.feed import Feed, FeedReader
from tcw.workbench.tui.hints import Hint
from tcw.workbench.tui.overlay import Palette, PaletteChoice
from tcw.workbench.tui.pane import PaneView
from tcw.workbench.tui.screen_edges import Edge, Entered, Entry, Lines
from tcw.workbench.tui.stage import ROOMY, Stage, spine_width


class Desk(Screen[None]):
    """Header, spine, panes, selection or decision bar, timeline, footer."""

    CSS = "Screen { layout: vertical; } #middle { height: 1fr; }"
    BINDINGS = []

    def __init__(self, feed: Feed, theme: Theme) -> None:
        super().__init__()
        self.feed = feed
        self.look = theme
        self.navigator = Navigator(View(Derived(Recording(), Provenance())))
        self.reading = FeedReader(feed, self.navigator)
        self.commands = Commands(theme.spells_keys)
        self.note = ""
        """The message in the footer."""
        self.offered = ""
        """A text that `y` copies while the footer mentions it."""
        self.zoomed = ""
        """The pane that has the whole screen, "" for none."""
        self.spine = PaneView(
            "spine", lambda width: chrome.spine(self.view, width), theme, number=1, rule=False
        )
        self.stage = Stage(lambda: self.view, lambda: self.look)
        self.entry = Entry(theme)
        self._shown: tuple[object, ...] = ()
        self._standing = True
        """Whether the panes are up and one of them has the focus."""

    @property
    def view(self) -> View:
        return self.navigator.view

    @property
    def recording(self) -> Recording:
        """The whole trace."""
        return self.reading.recording

    @property
    def state(self) -> chrome.State:
        return self.reading.state

    def compose(self) -> ComposeResult:
        yield Edge("header", self._header, self.look)
        with Horizontal(id="middle"):
            yield self.spine
            yield self.stage
        yield Edge("bar", self._bar, self.look)
        yield Edge("timeline", self._timeline, self.look)
        yield self.entry
        yield Edge("footer", self._footer, self.look)

    # What is painted

    async def rebuild(self) -> None:
        """Build the panes of the current arrangement if it is new, and fill them."""
        width = self.app.size.width
        name, presenting = self.navigator.arrangement, self.view.presenting
        arrangement = ARRANGEMENTS[name]
        if presenting:
            arrangement = presented(name, arrangement)
        cells = spine_width(arrangement, width, bool(self.zoomed) or presenting)
        roomy = presenting and self.app.size.height >= ROOMY
        shape = width < 100, width >= 180, self.zoomed, presenting
        wanted = (name, arrangement, cells, *shape, roomy)
        if wanted != self._shown:
            kept = self.focus_name if self._shown[:1] == (name,) else ""
            self._shown = wanted
            self.spine.display = cells > 0
            self.spine.styles.width = cells
            self._standing = False
            await self.stage.show(arrangement, width, self.zoomed, 2)
            focus = arrangement.focus
            self.focus_on(self.zoomed or kept, focus, f"{focus}-narrow")
            self._standing = True
        self.refresh_all()

    async def zoom_to(self, pane: str) -> None:
        """Give the whole screen to a pane; with "" show all panes again."""
        focus = self.zoomed or pane
        self.zoomed = pane
        await self.rebuild()
        self.focus_on(focus)

    async def show(self, arrangement: str) -> None:
        """Show an arrangement; if it is shown already, go back."""
        if self.navigator.arrangement == arrangement:
            self.navigator.back()
            self.reading.show_facts()
        else:
            self.navigator.go(arrangement, self.focus_name)
        await self.rebuild()

    def resized(self, pane: PaneView) -> None:
        """A pane has another size: its content depends on its width. A pane that is laid out before
        it can have the focus would take its cursor from the selection, and is filled afterwards."""
        if not self._standing:
            return
        pane.update(self.view.ref, self.view.lit)
        self.stage.fit(pane)

    async def on_resize(self) -> None:
        if self.is_mounted and self._shown:
            await self.rebuild()

    def panes(self) -> list[PaneView]:
        """The panes on the screen, the spine first."""
        return [*([self.spine] if self.spine.display else []), *self.stage.panes]

    def refresh_all(self) -> None:
        """Refill panes and edges."""
        for pane in self.panes():
            pane.update(self.view.ref, self.view.lit)
            self.stage.fit(pane)
        for edge in self.query(Edge):
            edge.update()

    async def use_theme(self, name: ThemeName) -> None:
        """Repaint everything in another theme."""
        self.look = replace(THEMES[name], spells_keys=self.look.spells_keys)
        self.styles.background = self.look.background
        for pane in (self.spine, *self.stage.panes):
            pane.theme = self.look
        self.entry.theme = self.look
        for edge in self.query(Edge):
            edge.theme = self.look
            edge.refresh()
        self.refresh_all()

    def _header(self, width: int) -> Lines:
        seconds = self.reading.seconds
        line = chrome.header(self.view, self.state, width, self.feed.name, seconds)
        return [(Row(body=line), "title")]

    def bar_rows(self, width: int) -> list[Row]:
        return chrome.rows(self.view, self.navigator.arrangement, width)

    def hints(self) -> tuple[Hint, ...]:
        """The keys in the footer."""
        return screen_edges.hints(self.view, self.navigator.arrangement)

    def _bar(self, width: int) -> Lines:
        return screen_edges.barred(self.bar_rows(width))

    def _timeline(self, width: int) -> Lines:
        return screen_edges.timeline_lines(self.view, self.navigator.arrangement, width)

    def _footer(self, width: int) -> Lines:
        return screen_edges.footer(self.note, self.hints(), self.commands, width)

    # Focus

    def focus_pane(self) -> PaneView | None:
        return self.focused if isinstance(self.focused, PaneView) else None

    @property
    def focus_name(self) -> str:
        """The pane in focus; "" for none."""
        pane = self.focus_pane()
        return pane.pane if pane is not None else ""

    @property
    def focus_row(self) -> Row:
        """The row under its cursor; an empty one if there is none."""
        pane = self.focus_pane()
        return pane.row if pane is not None else Row()

    def focus_on(self, *names: str) -> None:
        """Focus the first of these panes that is on the screen, else the first pane."""
        shown = {pane.pane: pane for pane in reversed(self.panes())}
        view = next((shown[name] for name in names if name in shown), None)
        view = view or next(iter(self.stage.panes), None)
        if view is not None:
            self.set_focus(view)

    def on_descendant_focus(self) -> None:
        for edge in self.query(Edge):
            edge.update()

    # What is said and asked

    def say(self, words: str) -> None:
        """Show a message in the footer until the next key."""
        self.note = words
        self.query_one("#footer", Edge).update()

    def ask_words(self, prompt: str, words: str, then: Callable[[str], object]) -> None:
        """Ask for a line of text and pass it to `then`; `esc` cancels."""
        pane = self.focus_pane()

        def changed(entered: Entered) -> None:
            if entered.settled or entered.given_up:
                self.set_focus(pane)
            if entered.settled:
                then(entered.words)

        self.entry.open(changed, prompt, words)

    def choose(self, choices: Sequence[PaletteChoice], asks: str = "") -> None:
        """Let the reader choose from a list; `esc` cancels."""

        async def chosen(choice: PaletteChoice | None) -> None:
            result = choice.run() if choice is not None else None
            if result is not None:
                await result

        self.app.push_screen(Palette(self.look, choices, asks), chosen)


@dataclass(eq=False)
class Controller:
    """Commands that belong together, and the controllers that they need."""

    desk: Desk
    """The screen: what is shown, and how to show or ask something."""

    @property
    def view(self) -> View:
        return self.desk.view
