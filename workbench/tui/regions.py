"""The regions of the screen, and the trace that is read into them."""

from __future__ import annotations

import math
import time
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from compiler.trace.provenance import Provenance
from viewers.panes import autograd, chrome, fusion, spine, standing
from viewers.panes.arrangement import ARRANGEMENTS
from viewers.panes.rows import Content, Row, width_of
from viewers.panes.view import Facts, View
from viewers.recording import Recording
from workbench.tui.commands import HINTS
from workbench.tui.edge import Edge, Lines
from workbench.tui.entry import Entry
from workbench.tui.feed import EVERY, Feed, writer_lives
from workbench.tui.messages import Delivered, Unreadable
from workbench.tui.navigator import Navigator
from workbench.tui.pane import PaneView
from workbench.tui.stage import Stage, spine_width
from workbench.tui.theme import Theme

PATIENCE = 10.0
"""Seconds without a record after which a recording from elsewhere counts as over."""


class Regions(Screen[None]):
    """Header, spine, panes, selection bar, timeline, footer; and the trace that they show."""

    CSS = "Screen { layout: vertical; } #middle { height: 1fr; }"
    BINDINGS = []

    def __init__(self, path: Path, theme: Theme) -> None:
        super().__init__()
        self.path = path
        self.look = theme
        self.recording = Recording()
        self.provenance = Provenance()
        self._parts: dict[str, tuple[Provenance, int]] = {}
        """Engine -> the links of its part, and how many of its records they were fed."""
        self.navigator = Navigator(View(Facts(self.recording, self.provenance)))
        self.state: chrome.State = "opening"
        self.view.live = True
        self.feed: Feed | None = None
        self.note = ""
        """Something said once, in the footer."""
        self.needle = ""
        self.zoomed = ""
        self.turned = False
        self._followed = False
        self._grew = -math.inf
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
        if self.state == "running" and self._state() == "incomplete":
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
        if records and not first:
            self._grew = began
        self.recording.feed(records)
        assert self.feed is not None
        self.recording.losses = self.feed.decoder.losses
        self.provenance.feed(records)
        self.view.facts = self._facts()
        self.navigator.grown()
        self.state = self._state()
        self.view.live = self.state == "running"
        if first:
            await self.rebuild()
        else:
            self.refresh_all()
        self.feed.pause = max(EVERY, 5 * (time.monotonic() - began))

    def _facts(self) -> Facts:
        """Of the trace, or of the engine that is looked at, where it has two."""
        parts = self.recording.engines
        if not parts:
            return Facts(self.recording, self.provenance)
        facts = {}
        for engine, part in parts.items():
            links, fed = self._parts.get(engine) or (Provenance(), 0)
            links.feed(part.records[fed:])
            self._parts[engine] = links, len(part.records)
            facts[engine] = Facts(part, links, self.recording)
        for one in facts.values():
            one.of_engines = facts
        if self.view.engine not in facts:
            self.view.engine = next(iter(facts))
        return facts[self.view.engine]

    def _state(self) -> chrome.State:
        end, failure = self.recording.end, self.recording.failure
        if end is None:
            self._followed = True
            growing = time.monotonic() - self._grew < PATIENCE
            alive = growing or writer_lives(self.recording.start, self.path)
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
            focus = ARRANGEMENTS[name].focus
            self._focus(self.zoomed or kept, focus, f"{focus}-narrow")
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
        elif name == "autograd":
            rows = autograd.reason(self.view, width)
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
        right = standing.position(self.view, self.navigator.arrangement)
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
