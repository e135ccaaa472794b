"""The workbench: the desk with its controllers, and what keys, clicks and records set off."""

from __future__ import annotations

import time
from functools import partial

from textual import events

from tcw.compiler.trace.records import Run
from tcw.viewers.kit.theme import THEMES, Theme
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.targets import ToBreakpoint, ToInputs, ToProcess, ToSetting, ToSuggestion
from tcw.viewers.panes.view import Derived
from tcw.workbench.tui import screen_edges
from tcw.workbench.tui.breaking import Breaking
from tcw.workbench.tui.canvas import CanvasView
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.comparing import Comparing
from tcw.workbench.tui.compile_again import CompileAgain
from tcw.workbench.tui.deciding import Deciding
from tcw.workbench.tui.desk import Desk
from tcw.workbench.tui.driving import Driving, Scrubbing
from tcw.workbench.tui.feed import Delivered, Feed, LiveFeed, Unreadable
from tcw.workbench.tui.hints import GOES, Hint, help_lines
from tcw.workbench.tui.moving import Moving, Searching
from tcw.workbench.tui.notes import Noting
from tcw.workbench.tui.overlay import Help, PaletteChoice
from tcw.workbench.tui.overriding import Overriding
from tcw.workbench.tui.pane import Moved, Opened, PaneView
from tcw.workbench.tui.predict import Predicting
from tcw.workbench.tui.saving import Saving
from tcw.workbench.tui.screen_edges import Edge
from tcw.workbench.tui.turning import Turning

ELSEWHERE = (
    ("Write a report", "text html markdown json pdf",
     "in a shell: tcw explain TRACE prints the report, --json as JSON"),
)  # fmt: skip
"""What is done outside the workbench: (entry, words that also find it, how to do it)."""
MOST_COMPILES = 500
"""The palette lists no more compiles than this."""


class Bench(Desk):
    """Creates the controllers and passes keys on to them."""

    def __init__(self, feed: Feed, theme: Theme, against: Derived | None = None) -> None:
        """`against`: another recording, with which runs are compared that have no other base."""
        super().__init__(feed, theme)
        self._begun = False
        self._first_key = ""
        """Of a sequence."""
        self.reading.against = against
        self.moving = Moving(self)
        self.searching = Searching(self)
        self.scrubbing = Scrubbing(self)
        self.driving = Driving(self, self.scrubbing)
        self.breaking = Breaking(self, self.driving)
        self.overriding = Overriding(self, self.breaking)
        again = CompileAgain(self, self.hand_over)
        self.deciding = Deciding(self, self.driving, self.overriding, again)
        self.comparing = Comparing(self, self.driving, self.overriding, again)
        self.turning = Turning(self, self.comparing)
        self.predicting = Predicting(self, self.scrubbing, self.driving)
        for controller in (
            self.moving,
            self,
            self.searching,
            self.turning,
            self.driving,
            self.breaking,
            self.deciding,
            self.comparing,
            self.overriding,
            Saving(self),
            self.scrubbing,
            self.predicting,
            Noting(self),
        ):
            self.commands.register(controller)

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
        """Take records that were read, and tell the controllers: overrides first, for what the
        others show depends on them."""
        began = time.monotonic()
        records = message.records
        self.reading.take(records)
        if self.recording.start is not None and not self._begun:
            self._begun = True
            self._go_to_beginning()
        self.overriding.see(records)
        self.driving.arrived(records)
        self.deciding.arrived(records)
        await self.predicting.arrived(records)
        await self.rebuild()
        if self.driving.brings:
            for pane in self.stage.panes:
                pane.bring(self.driving.brings)
            self.driving.brings = ""
        took = time.monotonic() - began
        self.feed.pause = max(self.feed.every, 5 * took)

    def _go_to_beginning(self) -> None:
        """Where a recording opens: at its profile, at what differs, or at its ranks."""
        view, settings = self.view, self.recording.settings
        if settings is not None and settings.profile and not view.driven:
            self.navigator.arrangement = "profile"
            self.navigator.grown()
        elif view.compares_traces and not view.driven:
            self.navigator.go("differences")
        elif view.several is not None:
            self.navigator.go("ranks")

    # What is painted

    def bar_rows(self, width: int) -> list[Row]:
        guessing = self.predicting.guessing
        return self.predicting.bar(width) if guessing else super().bar_rows(width)

    def hints(self) -> tuple[Hint, ...]:
        return self.predicting.hints if self.predicting.guessing else super().hints()

    # Keys and the mouse

    async def on_key(self, event: events.Key) -> None:
        if self.focused is self.entry:
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
        self.overriding.other_command(name)
        offered, self.offered = self.offered, ""
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
                self.comparing.choose(name, index)
            case ToProcess(number):
                self.app.look_at(number, self.look)  # type: ignore[attr-defined]
            case ToInputs():
                self.comparing.ask_inputs()
            case ToSuggestion(cause, place):
                self.comparing.try_suggestion(cause, place)
            case _ if self.navigator.opened(row, pane.pane):
                await self.rebuild()
            case _ if row.ref or row.key:
                self.moving.focus_counterpart(pane)

    @command("Go back", "escape", "backspace", shown="esc")
    async def back(self) -> None:
        if self.zoomed:
            await self.zoom_to("")
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

    async def on_edge_clicked(self, message: Edge.Clicked) -> None:
        if message.edge.id == "timeline":
            await self.scrubbing.clicked(message.edge.size.width, message.x)
        elif message.edge.id in ("footer", "bar"):
            row, width = message.edge.lines[message.y][0], message.edge.size.width
            key = screen_edges.clicked(row, self.commands, width, message.x)
            if key:
                await self._pressed(key)
        elif message.edge.id == "header":
            about = screen_edges.badge(message.edge.lines[0][0], message.x)
            if self.navigator.arrangement != about:
                await self.show(about)

    # The whole screen

    @command("Zoom this pane", "z")
    async def zoom(self) -> None:
        pane = self.focus_pane()
        if pane is not None and pane is not self.spine:
            await self.zoom_to("" if self.zoomed else pane.pane)

    @command("Present: few large panes", "p")
    async def presenter(self) -> None:
        """No spine, no timeline, no ids; a few lines of source, two panes, twice the space."""
        self.view.presenting = not self.view.presenting
        self.zoomed = ""
        await self.rebuild()
        if not self.view.presenting:
            self.say("all of the screen again")

    @command("Show all ranks of this folder", "at", shown="@")
    async def ranks(self) -> None:
        await self.show("ranks")

    # Help, the palette, quitting

    @command("Show help", "question_mark", shown="?")
    def help(self) -> None:
        pane = self.focus_pane()
        name = pane.content.name if pane else "tcw"
        driven = self.view.driven
        lines = help_lines(self.commands, self.focus_name, name, self.hints(), driven)
        self.app.push_screen(Help(self.look, lines))

    @command("Show all commands", "colon", shown=":")
    def palette(self) -> None:
        self.choose(self.choices())

    def choices(self) -> list[PaletteChoice]:
        """The entries of the palette."""
        view = self.view
        choices = [PaletteChoice(words, partial(self._go, name)) for name, words in GOES]
        choices += [PaletteChoice(c.words, c.run, c.shown, c.also) for c in self.commands.all]
        choices += [
            PaletteChoice(words, partial(self.say, said), also=also)
            for words, also, said in ELSEWHERE
        ]
        choices += self.breaking.choices("b")
        if len(view.track.runs) > 1:
            for run in self.recording.all(Run):
                said = f": {run.because}" if run.because else ""
                turn = partial(self.turning.turn_to_run, run.number)
                choices.append(PaletteChoice(f"Look at run {run.number}{said}", turn))
        choices += [
            PaletteChoice(f"Use the {name} theme", partial(self.use_theme, name)) for name in THEMES
        ]
        for piece in list(view.derived.pieces.values())[:MOST_COMPILES]:
            name = f"line {piece.resumes_at}" if piece.resumes_at else piece.function
            look = partial(self._compile, piece.compile_id)
            choices.append(PaletteChoice(f"Look at {piece.compile_id} {name}", look))
        return choices

    async def _go(self, arrangement: str) -> None:
        self.navigator.go(arrangement, self.focus_name)
        await self.rebuild()

    def _compile(self, compile_id: str) -> None:
        self.navigator.compile(compile_id)
        self.refresh_all()

    @command("Quit", "q")
    def quit(self) -> None:
        if self.overriding.may_leave():
            self.app.exit(return_code=0)

    @command("Stop the recording; again, quit", "ctrl+c", shown="ctrl-c")
    def stop(self) -> None:
        """The first time, end the recording; the second time, quit."""
        if not self.driving.stop():
            self.quit()

    def hand_over(self, feed: LiveFeed) -> None:
        """Drive a compile of what is recorded, on a screen in place of this one."""
        self.view.playhead = 0
        self.reading.show_facts()
        live = Bench(feed, self.look, against=self.view.derived)
        live.view.breakpoints = self.view.breakpoints
        live.overriding.history.settled = dict(self.overriding.history.kept)
        self.app.switch_screen(live)
