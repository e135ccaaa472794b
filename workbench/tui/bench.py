"""The screen of the workbench: its regions, and the controllers that do what keys ask for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from tcw.compiler.trace.provenance import Provenance
from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.kit.theme import THEMES, Theme, ThemeName
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes import bar, chrome, spine
from tcw.viewers.panes.arrangement import presented
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.targets import ToBreakpoint, ToInputs, ToProcess, ToSetting, ToSuggestion
from tcw.viewers.panes.view import Derived, View
from tcw.viewers.recording import Recording
from tcw.workbench.tui import edges
from tcw.workbench.tui.breaking import Breaking
from tcw.workbench.tui.canvas import CanvasView
from tcw.workbench.tui.commands import Commands, command
from tcw.workbench.tui.comparing import Comparing
from tcw.workbench.tui.deciding import Deciding
from tcw.workbench.tui.driving import Driving
from tcw.workbench.tui.edge import Edge, Lines
from tcw.workbench.tui.entry import Entry
from tcw.workbench.tui.layouts import Layouts
from tcw.workbench.tui.live_feed import Feed, LiveFeed
from tcw.workbench.tui.messages import Delivered, Moved, Opened, Unreadable
from tcw.workbench.tui.moving import Moving
from tcw.workbench.tui.notes import Noting
from tcw.workbench.tui.overlay import Palette, PaletteChoice
from tcw.workbench.tui.overrides import Overrides
from tcw.workbench.tui.pane import PaneView
from tcw.workbench.tui.predict import Predicting
from tcw.workbench.tui.reading import FeedReader
from tcw.workbench.tui.remembering import Remembering
from tcw.workbench.tui.running_again import RunningAgain
from tcw.workbench.tui.saving import Saving
from tcw.workbench.tui.scrubbing import Scrubbing
from tcw.workbench.tui.searching import Searching
from tcw.workbench.tui.setting import Setting
from tcw.workbench.tui.stage import ROOMY, Stage, spine_width
from tcw.workbench.tui.tool import Tool
from tcw.workbench.tui.turning import Turning


class Bench(Screen[None]):
    """Header, spine, panes, selection or decision bar, timeline, footer.

    It paints and passes on; what a key does is in a controller, which calls it `desk`.
    """

    CSS = "Screen { layout: vertical; } #middle { height: 1fr; }"
    BINDINGS = []

    def __init__(
        self, feed: Feed, theme: Theme, theme_chosen: bool = False, against: Derived | None = None
    ) -> None:
        """`against`: another recording, with which runs are compared that have no other base."""
        super().__init__()
        self.feed = feed
        self.look = theme
        self.navigator = Navigator(View(Derived(Recording(), Provenance())))
        self.note = ""
        """The message in the footer."""
        self.spine = PaneView(
            "spine", lambda width: spine.content(self.view, width), theme, number=1, rule=False
        )
        self.stage = Stage(lambda: self.view, lambda: self.look)
        self._shown: tuple[object, ...] = ()
        self._standing = True
        """Whether the panes are up and one of them has the focus."""
        self._begun = False
        self._offered = ""
        """A text that `y` copies while the footer mentions it."""
        self._first_key = ""
        """Of a sequence."""
        self.reading = FeedReader(feed, self.navigator)
        self.reading.against = against
        self.moving = Moving(self)
        self.searching = Searching(self, Entry(theme))
        self.layouts = Layouts(self)
        self.scrubbing = Scrubbing(self, self.reading)
        self.driving = Driving(self, self.scrubbing)
        self.breaking = Breaking(self, self.driving)
        self.overrides = Overrides(self, self.breaking)
        again = RunningAgain(self)
        self.deciding = Deciding(self, self.driving, self.overrides, again)
        self.comparing = Comparing(self, self.driving, self.overrides, again)
        self.setting = Setting(self, self.comparing)
        self.turning = Turning(self, self.reading, self.comparing)
        self.predicting = Predicting(self, self.scrubbing, self.driving)
        self.remembering = Remembering(
            self, self.driving, self.breaking, self.layouts, theme_chosen
        )
        self.commands = Commands(self.look.spells_keys)
        tool = Tool(
            self,
            self.commands,
            self.turning,
            self.driving,
            self.breaking,
            self.overrides,
            self.layouts,
            self.remembering,
        )
        for controller in (
            self.moving,
            self,
            self.layouts,
            self.searching,
            self.turning,
            self.driving,
            self.breaking,
            self.deciding,
            self.comparing,
            self.overrides,
            self.setting,
            Saving(self),
            self.scrubbing,
            self.predicting,
            Noting(self),
            tool,
        ):
            self.commands.register(controller)

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
        yield self.searching.entry
        yield Edge("footer", self._footer, self.look)

    async def on_mount(self) -> None:
        self.styles.background = self.look.background
        self.spine.display = False
        await self.rebuild()
        self.feed.start(self.post_message)
        self.set_interval(1.0, self._look)

    async def on_unmount(self) -> None:
        self.feed.stop()

    # Records

    def on_unreadable(self, message: Unreadable) -> None:
        self.app.give_up(message.why, 2)  # type: ignore[attr-defined]

    def _look(self) -> None:
        """A compile that runs has a clock."""
        if self.reading.look():
            self.refresh_all()
        elif self.view.driven and self.state == "running":
            self.query_one("#header", Edge).update()

    async def on_delivered(self, message: Delivered) -> None:
        """Take records that were read."""
        began = time.monotonic()
        self.reading.take(message.records)
        if self.recording.start is not None and not self._begun:
            self._begun = True
            await self.remembering.recall()
        await self._arrived(message.records)
        await self.rebuild()
        if self.driving.brings:
            for pane in self.stage.panes:
                pane.bring(self.driving.brings)
            self.driving.brings = ""
        took = time.monotonic() - began
        self.feed.pause = max(self.feed.every, 5 * took)

    async def _arrived(self, records: list[AnyRecord]) -> None:
        """Tell the controllers: overrides first, for what the others show depends on them."""
        self.overrides.see(records)
        self.driving.arrived(records)
        self.deciding.arrived(records)
        await self.predicting.arrived(records)

    # What is painted

    async def rebuild(self) -> None:
        """Build the panes of the current arrangement if it is new, and fill them."""
        width = self.app.size.width
        name, layouts = self.navigator.arrangement, self.layouts
        arrangement = layouts.arrangement(name)
        if self.view.presenting:
            arrangement = presented(name, arrangement)
        large = bool(layouts.zoomed) or self.view.presenting
        cells = spine_width(arrangement, width, large)
        roomy = self.view.presenting and self.app.size.height >= ROOMY
        shape = width < 100, width >= 180, layouts.turned, layouts.zoomed, self.view.presenting
        wanted = (name, arrangement, cells, *shape, roomy)
        if wanted != self._shown:
            kept = self.focus_name if self._shown[:1] == (name,) else ""
            self._shown = wanted
            self.spine.display = cells > 0
            self.spine.styles.width = cells
            self._standing = False
            await self.stage.show(name, arrangement, width, layouts.turned, layouts.zoomed, 2)
            focus = arrangement.focus
            self.focus_on(layouts.zoomed or kept, focus, f"{focus}-narrow")
            self._standing = True
        self.refresh_all()

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
        for pane in self.panes():
            pane.theme = self.look
        self.spine.theme = self.searching.entry.theme = self.look
        for edge in self.query(Edge):
            edge.theme = self.look
            edge.refresh()
        self.refresh_all()

    def _header(self, width: int) -> Lines:
        seconds = self.reading.seconds
        line = chrome.header(self.view, self.state, width, self.feed.name, seconds)
        return [(Row(body=line), "title")]

    def _bar(self, width: int) -> Lines:
        if self.predicting.guessing:
            return edges.barred(self.predicting.bar(width))
        return edges.barred(bar.rows(self.view, self.navigator.arrangement, width))

    def _timeline(self, width: int) -> Lines:
        return edges.timeline_lines(self.view, self.navigator.arrangement, width)

    def _footer(self, width: int) -> Lines:
        if self.predicting.guessing:
            hints = self.predicting.hints
        else:
            hints = edges.hints(self.view, self.navigator.arrangement)
        return edges.footer(self.note, hints, self.commands, width)

    def say(self, words: str) -> None:
        """Show a message in the footer until the next key."""
        self.note = words
        self.query_one("#footer", Edge).update()

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
        found = next((shown[name] for name in names if name in shown), None)
        found = found or next(iter(self.stage.panes), None)
        if found is not None:
            self.set_focus(found)

    def on_descendant_focus(self) -> None:
        for edge in self.query(Edge):
            edge.update()

    # Keys and the mouse

    async def on_key(self, event: events.Key) -> None:
        if self.focused is self.searching.entry:
            return
        event.stop()
        event.prevent_default()
        await self._pressed(event.key)

    async def _pressed(self, key: str) -> None:
        if not await self.predicting.key(key):
            await self._key(key)

    async def _key(self, key: str) -> None:
        if self.note:
            self.say("")
        if key == "g" and self._first_key != "g":
            self._first_key = "g"
            return
        first, self._first_key = self._first_key, ""
        if first == "g" and key == "g":
            self.moving.first()
        elif key.isdigit() and key != "0":
            self.moving.focus_number(int(key))
        elif key in self.commands.by_key:
            await self.run_command(self.commands.by_key[key].name)

    async def run_command(self, name: str) -> None:
        """Run a command."""
        self.overrides.other_command(name)
        offered, self._offered = self._offered, ""
        if offered and name == "copy":
            self.app.copy_to_clipboard(offered)
            self.say("copied")
            return
        pane = self.focus_pane()
        if isinstance(pane, CanvasView) and pane.command(name):
            return
        result = self.commands.by_name[name].run()
        if result is not None:
            await result

    def on_moved(self, message: Moved) -> None:
        self.navigator.moved(message.row)
        self.refresh_all()

    async def on_opened(self, message: Opened) -> None:
        await self._open(message.pane)

    @command("Open what is selected", "enter", shown="⏎")
    async def open(self) -> None:
        pane = self.focus_pane()
        if pane is not None and pane.cursor >= 0:
            await self._open(pane)

    async def _open(self, pane: PaneView) -> None:
        row = pane.row
        match row.opens:
            case ToBreakpoint(number):
                self.breaking.toggle(number)
            case ToSetting(name, index):
                self.setting.choose(name, index)
            case ToProcess(number):
                self.remembering.remember()
                self.app.look_at(number, self.look)  # type: ignore[attr-defined]
            case ToInputs():
                self.setting.ask_inputs()
            case ToSuggestion(cause, place):
                self.setting.try_suggestion(cause, place)
            case _ if self.navigator.opened(row, pane.pane):
                await self.rebuild()
            case _ if row.ref or row.key:
                self.moving.focus_counterpart(pane)

    @command("Go back", "escape", "backspace", shown="esc")
    async def back(self) -> None:
        if await self.layouts.leave_zoom():
            return
        searched = self.searching.forget()
        stop = self.navigator.back()
        if stop is not None:
            self.reading.show_facts()  # those of the time in which the stop was
            await self.rebuild()
            self.focus_on(stop.focus)
        elif not searched:
            await self._home()

    async def _home(self) -> None:
        """Where `esc` leads in the end: to where the compile is, else to the overview; from
        there back to now."""
        standing = self.driving.belonged if self.view.waiting is not None else ""
        home = standing or "overview"
        if self.navigator.arrangement != home:
            self.navigator.arrangement = home
            await self.rebuild()
        elif self.view.playhead:
            await self.scrubbing.live()

    async def show(self, arrangement: str) -> None:
        """Show an arrangement; if it is shown already, go back."""
        if self.navigator.arrangement == arrangement:
            self.navigator.back()
            self.reading.show_facts()
        else:
            self.navigator.go(arrangement, self.focus_name)
        await self.rebuild()

    async def on_edge_clicked(self, message: Edge.Clicked) -> None:
        if message.edge.id == "timeline":
            await self.scrubbing.clicked(message.edge.size.width, message.x)
        elif message.edge.id in ("footer", "bar"):
            row, width = message.edge.lines[message.y][0], message.edge.size.width
            key = edges.clicked(row, self.commands, width, message.x)
            if key:
                await self._pressed(key)
        elif message.edge.id == "header":
            about = edges.badge(message.edge.lines[0][0], message.x)
            if self.navigator.arrangement != about:
                await self.show(about)

    def on_pane_view_dragged(self, message: PaneView.Dragged) -> None:
        """The rule at the left of a pane, or its title row, is moved."""
        self.stage.drag(message.pane, message.by, message.down)

    # What is requested

    def on_entry_changed(self, message: Entry.Changed) -> None:
        self.searching.changed(message)

    def ask_words(self, prompt: str, words: str, then: Callable[[str], object]) -> None:
        """Ask for a line of text and pass it to `then`; `esc` cancels."""
        self.searching.ask_words(prompt, words, then)

    def offer(self, words: str) -> None:
        """Have the next `y` copy these words."""
        self._offered = words

    def choose(self, choices: Sequence[PaletteChoice], asks: str = "") -> None:
        """Let the reader choose from a list; `esc` cancels."""

        async def chosen(choice: PaletteChoice | None) -> None:
            result = choice.run() if choice is not None else None
            if result is not None:
                await result

        self.app.push_screen(Palette(self.look, choices, asks), chosen)

    # Another screen

    @command("Show all ranks of this folder", "at", shown="@")
    async def ranks(self) -> None:
        await self.show("ranks")

    def hand_over(self, feed: LiveFeed) -> None:
        """Drive a compile of what is recorded, on a screen in place of this one."""
        self.view.playhead = 0
        self.reading.show_facts()
        live = Bench(feed, self.look, theme_chosen=True, against=self.view.derived)
        live.view.breakpoints = self.view.breakpoints
        live.overrides.overruled.settled = dict(self.overrides.overruled.kept)
        self.remembering.remember()
        self.app.switch_screen(live)
