"""The screen: regions, one selection, and what each command does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from compiler.trace.provenance import Provenance
from viewers.panes import chrome, fusion, spine
from viewers.panes.arrangement import ARRANGEMENTS
from viewers.panes.rows import Content, Row, width_of
from viewers.panes.view import Facts, View
from viewers.recording import Recording
from workbench.tui import help as help_text
from workbench.tui.commands import BY_KEY, COMMANDS, GOES, HINTS
from workbench.tui.edge import Edge, Lines
from workbench.tui.entry import Entry
from workbench.tui.feed import EVERY, Feed, writer_lives
from workbench.tui.messages import Delivered, Moved, Opened, Unreadable
from workbench.tui.navigator import Navigator
from workbench.tui.overlay import Choice, Help, Palette
from workbench.tui.pane import PaneView
from workbench.tui.stage import Stage, spine_width
from workbench.tui.theme import THEMES, Theme, ThemeName

ORDERS = {"memory": ("", "size", "life")}


class Bench(Screen[None]):
    """The workbench on one trace."""

    CSS = "Bench { layout: vertical; } #middle { height: 1fr; }"
    BINDINGS = []

    def __init__(self, path: Path, theme: Theme) -> None:
        super().__init__()
        self.path = path
        self.look = theme
        self.recording = Recording()
        self.provenance = Provenance()
        self.navigator = Navigator(View(Facts(self.recording, self.provenance)))
        self.state: chrome.State = "opening"
        self.feed: Feed | None = None
        self.note = ""
        """Something said once, in the footer."""
        self.needle = ""
        self.zoomed = ""
        self.turned = False
        self._pending = ""
        self._followed = False
        self._shown: tuple[object, ...] = ()

    @property
    def view(self) -> View:
        return self.navigator.view

    def compose(self) -> ComposeResult:
        theme = self.look
        yield Edge("header", self._header, theme)
        with Horizontal(id="middle"):
            self.spine = PaneView("spine", self._spine, theme, number=1, rule=False)
            yield self.spine
            self.stage = Stage(lambda: self.view, lambda: self.look)
            yield self.stage
        yield Edge("bar", self._bar, theme)
        yield Edge("timeline", self._timeline, theme)
        self.entry = Entry(theme)
        yield self.entry
        yield Edge("footer", self._footer, theme)

    async def on_mount(self) -> None:
        self.styles.background = self.look.background
        self.spine.display = False
        await self.rebuild()
        self.feed = Feed(self.path, self.post_message)
        self.feed.start()
        self.set_interval(1.0, self._look)

    def _look(self) -> None:
        """A recording whose process is gone does not go on."""
        if self.state == "running" and not writer_lives(self.recording.start, self.path):
            self.state = "incomplete"
            self.view.live = False
            self.refresh_all()

    def on_unmount(self) -> None:
        if self.feed is not None:
            self.feed.stop()

    # Reading

    def on_unreadable(self, message: Unreadable) -> None:
        self.app.give_up(message.why, 2)  # type: ignore[attr-defined]

    async def on_delivered(self, message: Delivered) -> None:
        """Take records that were read."""
        records = message.records
        began = time.monotonic()
        first = self.state == "opening"
        self.recording.feed(records)
        assert self.feed is not None
        self.recording.losses = self.feed.decoder.losses
        self.provenance.feed(records)
        self.view.facts = Facts(self.recording, self.provenance)
        self.navigator.grown()
        self.state = self._state()
        self.view.live = self.state == "running"
        if first:
            await self.rebuild()
        else:
            self.refresh_all()
        self.feed.pause = max(EVERY, 5 * (time.monotonic() - began))

    def _state(self) -> chrome.State:
        end, failure = self.recording.end, self.recording.failure
        if end is None:
            self._followed = True
            alive = writer_lives(self.recording.start, self.path)
            return "running" if alive else "incomplete"
        if failure is not None or end.status not in ("ok", "exited", "incomplete"):
            return "failed"
        if end.status == "incomplete":
            return "incomplete"
        return "finished" if self._followed else "replay"

    # What is painted

    async def rebuild(self) -> None:
        """Build the panes of the present arrangement, unless they stand already."""
        width = self.app.size.width
        name = self.navigator.arrangement
        cells = spine_width(name, width, bool(self.zoomed))
        wanted = (name, cells, width < 100, width >= 180, self.turned, self.zoomed)
        if wanted != self._shown:
            pane = self.focus_pane()
            kept = pane.pane if pane and self._shown[:1] == (name,) else ""
            self._shown = wanted
            self.spine.display = cells > 0
            self.spine.styles.width = cells
            await self.stage.show(name, width, self.turned, self.zoomed, 2)
            self._focus(self.zoomed or kept, ARRANGEMENTS[name].focus)
        self.refresh_all()

    def resized(self, pane: PaneView) -> None:
        """A pane has another size: its content depends on its width."""
        pane.update(self.view.ref, self.view.lit)
        self.stage.fit(pane)

    async def on_resize(self) -> None:
        if self.is_mounted and self._shown:
            await self.rebuild()

    def panes(self) -> list[PaneView]:
        return [*([self.spine] if self.spine.display else []), *self.stage.panes]

    def refresh_all(self, but: PaneView | None = None) -> None:
        """Everything that depends on the view is made anew."""
        for pane in self.panes():
            pane.update(self.view.ref, self.view.lit)
            self.stage.fit(pane)
        for edge in self.query(Edge):
            edge.update()

    def _spine(self, width: int) -> Content:
        return spine.content(self.view, width)

    def _header(self, width: int) -> Lines:
        return [(Row(body=chrome.header(self.view, self.state, width, self.path.name)), "title")]

    def _bar(self, width: int) -> Lines:
        name = self.navigator.arrangement
        if name == "source":
            rows = chrome.selection(self.view, width)
        elif name == "fusion":
            rows = fusion.verdict(self.view, width)
        else:
            rows = []
        return [
            (
                Row(gutter=((" ", "text"),), body=row.body, right=row.right),
                "title" if row.heading else "",
            )
            for row in rows
        ]

    def _timeline(self, width: int) -> Lines:
        if width < 100:
            return []
        right = chrome.position(self.view)
        above, below = chrome.timeline(self.view, width, width_of(right))
        return [(Row(body=above), ""), (Row(body=below, right=right), "")]

    def _footer(self, width: int) -> Lines:
        ending = (("? ", "key"), ("help  ", "dim"), (": ", "key"), ("all commands ", "dim"))
        if self.note:
            return [(Row(body=((" ", "text"), (self.note, "accent")), right=ending), "title")]  # type: ignore[arg-type]
        spans = [(" ", "text")]
        used = 1 + sum(len(words) for words, _ in ending)
        for key, words in HINTS[self.navigator.arrangement]:
            size = len(key) + len(words) + 3
            if used + size > width:
                break
            used += size
            spans += [(key + " ", "key"), (words + "  ", "dim")]
        return [(Row(body=tuple(spans), right=ending), "title")]  # type: ignore[arg-type]

    def say(self, words: str) -> None:
        """Say something in the footer until the next key."""
        self.note = words
        self.query_one("#footer", Edge).update()

    # Focus

    def focus_pane(self) -> PaneView | None:
        return self.focused if isinstance(self.focused, PaneView) else None

    def _focus(self, *names: str) -> None:
        """Focus the first of these panes that is shown, else the first of all."""
        shown = {pane.pane: pane for pane in reversed(self.panes())}
        found = next((shown[name] for name in names if name in shown), None)
        found = found or next(iter(self.stage.panes), None)
        if found is not None:
            self.set_focus(found)

    def on_descendant_focus(self) -> None:
        for edge in self.query(Edge):
            edge.update()

    # Keys and messages

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
        method: Callable[[], object] = getattr(self, f"do_{name}")
        result = method()
        if result is not None:
            await result  # type: ignore[misc]

    def on_moved(self, message: Moved) -> None:
        self.navigator.moved(message.pane.pane, message.row)
        self.refresh_all()

    async def on_opened(self, message: Opened) -> None:
        await self._open(message.pane)

    async def _open(self, pane: PaneView) -> None:
        row = pane.row
        if self.navigator.opened(row, pane.pane):
            await self.rebuild()
            if row.key.endswith(":kernels"):
                self._focus("kernel")
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

    async def on_edge_clicked(self, message: Edge.Clicked) -> None:
        if message.edge.id == "timeline":
            found = chrome.at(self.view, message.edge.size.width, message.x)
            if found:
                self.navigator.compile(found)
                self.refresh_all()

    def on_entry_changed(self, message: Entry.Changed) -> None:
        pane = self.searched
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

    # Commands

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

    def _kind(self, by: int) -> None:
        pane = self.focus_pane()
        self.navigator.step(by, pane.pane if pane else "")
        for shown in self.panes():
            shown.update(
                self.view.ref, self.view.lit, reset=shown.pane in ("kernel", "fusion", "causes")
            )
        self.refresh_all()

    def do_next_kind(self) -> None:
        self._kind(1)

    def do_previous_kind(self) -> None:
        self._kind(-1)

    def _language(self, by: int) -> None:
        pane = self.focus_pane()
        name = pane.pane if pane else ""
        if not self.navigator.language(by, name):
            only = "one graph" if name == "graph" else "code in one language"
            self.say(f"this recording has {only} here")
        for shown in self.panes():
            if shown.pane == ("graph" if name == "graph" else "kernel"):
                shown.update(self.view.ref, self.view.lit, reset=True)
        self.refresh_all()

    def do_next_language(self) -> None:
        self._language(1)

    def do_previous_language(self) -> None:
        self._language(-1)

    def do_order(self) -> None:
        orders = ORDERS.get(self.navigator.arrangement)
        if orders is None:
            self.say("this pane has one order")
            return
        view = self.view
        known = view.order if view.order in orders else ""
        view.order = orders[(orders.index(known) + 1) % len(orders)]
        self.refresh_all()

    def do_raw(self) -> None:
        self.view.raw = not self.view.raw
        self.refresh_all()

    def do_torch_text(self) -> None:
        self.view.torch_text = not self.view.torch_text
        self.refresh_all()

    def do_copy(self) -> None:
        pane = self.focus_pane()
        if pane is None or not pane.row.key:
            return
        words = pane.row.copies or pane.row.text.strip()
        self.app.copy_to_clipboard(words)
        shown = words.splitlines()[0] if words else ""
        self.say(f"copied  {shown[:60]}")

    def do_help(self) -> None:
        pane = self.focus_pane()
        name = pane.content.name if pane else "tcw"
        self.app.push_screen(Help(self.look, help_text.lines(pane.pane if pane else "", name)))

    def do_palette(self) -> None:
        choices = [Choice(f"go:{name}", words) for name, words in GOES]
        choices += [Choice(f"do:{c.name}", c.words, c.shown) for c in COMMANDS]
        choices += [Choice(f"theme:{name}", f"Use the {name} theme") for name in THEMES]
        for piece in list(self.view.facts.pieces.values())[:500]:
            name = f"line {piece.resumes_at}" if piece.resumes_at else piece.function
            choices.append(
                Choice(f"compile:{piece.compile_id}", f"Look at {piece.compile_id} {name}")
            )

        async def chosen(answer: str | None) -> None:
            kind, _, rest = (answer or "").partition(":")
            if kind == "do":
                await self.command(rest)
            elif kind == "go":
                pane = self.focus_pane()
                self.navigator.go(rest, pane.pane if pane else "")
                await self.rebuild()
            elif kind == "compile":
                self.navigator.compile(rest)
                self.refresh_all()
            elif kind == "theme":
                await self.use_theme(rest)  # type: ignore[arg-type]

        self.app.push_screen(Palette(self.look, choices), chosen)

    async def use_theme(self, name: ThemeName) -> None:
        """Paint everything anew in another theme."""
        self.look = THEMES[name]
        self.styles.background = self.look.background
        for pane in self.panes():
            pane.theme = self.look
        self.spine.theme = self.entry.theme = self.look
        for edge in self.query(Edge):
            edge.theme = self.look
        self.refresh_all()

    def do_quit(self) -> None:
        self.app.exit(return_code=0)
