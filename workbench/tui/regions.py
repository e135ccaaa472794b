"""The regions of the screen, and what is painted there."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.screen import Screen

from compiler.trace.provenance import Provenance
from viewers.panes import (
    autograd,
    chrome,
    decision_bar,
    fusion,
    memory,
    spine,
    timeline,
    waterfall,
)
from viewers.panes.arrangement import ARRANGEMENTS, PROFILES, Arrangement, presented
from viewers.panes.rows import Content, Row
from viewers.panes.view import Facts, View
from viewers.recording import Recording
from workbench.tui.commands import CHOOSE, DECIDE, HINTS, OVER, PAST, RUNNING, STAND, STEP, Hint
from workbench.tui.edge import Edge, Lines
from workbench.tui.entry import Entry
from workbench.tui.feed import Feed
from workbench.tui.navigator import Navigator
from workbench.tui.pane import PaneView
from workbench.tui.stage import ROOMY, Stage, spine_width
from workbench.tui.theme import Theme


class Regions(Screen[None]):
    """Header, spine, panes, selection or decision bar, timeline, footer."""

    CSS = "Screen { layout: vertical; } #middle { height: 1fr; }"
    BINDINGS = []

    def __init__(self, feed: Feed, theme: Theme) -> None:
        super().__init__()
        self.feed = feed
        self.look = theme
        self.navigator = Navigator(View(Facts(Recording(), Provenance())))
        self.state: chrome.State = "opening"
        self.view.live = True
        self.note = ""
        """Something said once, in the footer."""
        self.needle = ""
        self.zoomed = ""
        self.turned = False
        self.own: dict[str, Arrangement] = {}
        """Arrangements that the reader made of those with these names."""
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

    # What is painted

    async def rebuild(self) -> None:
        """Build the panes of the present arrangement, unless they stand already."""
        width = self.app.size.width
        name = self.navigator.arrangement
        arrangement = self.own.get(name) or ARRANGEMENTS[name]
        if self.view.presenting:
            arrangement = presented(name, arrangement)
        large = bool(self.zoomed) or self.view.presenting
        cells = spine_width(arrangement, width, large)
        roomy = self.view.presenting and self.app.size.height >= ROOMY
        shape = width < 100, width >= 180, self.turned, self.zoomed, self.view.presenting, roomy
        wanted = (name, arrangement, cells, *shape)
        if wanted != self._shown:
            pane = self.focus_pane()
            kept = pane.pane if pane and self._shown[:1] == (name,) else ""
            self._shown = wanted
            self.spine.display = cells > 0
            self.spine.styles.width = cells
            await self.stage.show(name, arrangement, width, self.turned, self.zoomed, 2)
            focus = arrangement.focus
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

    def refresh_edges(self, *names: str) -> None:
        for name in names:
            self.query_one(f"#{name}", Edge).update()

    def _spine(self, width: int) -> Content:
        return spine.content(self.view, width)

    def _header(self, width: int) -> Lines:
        line = chrome.header(self.view, self.state, width, self.feed.name, self.seconds())
        return [(Row(body=line), "title")]

    def seconds(self) -> float | None:
        """Since the compile went on; None where this screen does not drive it."""
        return None

    def _bar(self, width: int) -> Lines:
        name = self.navigator.arrangement
        rows = decision_bar.rows(self.view, width)
        if rows:
            pass
        elif name == "source":
            rows = chrome.selection(self.view, width)
        elif name == "fusion":
            rows = fusion.verdict(self.view, width)
        elif name in ("profile", "region"):
            rows = waterfall.selection(self.view, width)
        elif name == "memory":
            rows = memory.verdict(self.view, width)
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
        if width < 100 or self.view.presenting:
            return []
        above, below, right = timeline.timeline(self.view, width, self.navigator.arrangement)
        return [(Row(body=above), ""), (Row(body=below, right=right), "")]

    def _footer(self, width: int) -> Lines:
        ending = (("? ", "key"), ("help  ", "dim"), (": ", "key"), ("all commands ", "dim"))
        if self.note:
            return [(Row(body=((" ", "text"), (self.note, "accent")), right=ending), "title")]  # type: ignore[arg-type]
        spans = [(" ", "text")]
        used = 1 + sum(len(words) for words, _ in ending)
        for key, words in self.hints():
            size = len(key) + len(words) + 3
            if used + size > width:
                break
            used += size
            spans += [(key + " ", "key"), (words + "  ", "dim")]
        return [(Row(body=tuple(spans), right=ending), "title")]  # type: ignore[arg-type]

    def hints(self) -> tuple[Hint, ...]:
        """The keys that matter now, most useful first."""
        view, arrangement = self.view, self.navigator.arrangement
        if view.playhead:
            return DECIDE if view.asked is not None else PAST
        if not view.driven or arrangement in ("breakpoints", "overrides"):
            return HINTS[arrangement]
        waiting = view.waiting
        if waiting is None:
            return RUNNING
        if waiting.decision:
            return DECIDE if "/fuse/" in waiting.decision else CHOOSE
        if waiting.kind == "end":
            profile = arrangement in PROFILES and view.facts.profile is not None
            return HINTS[arrangement] if profile else OVER
        return STEP if waiting.kind == "step" or waiting.stage == "capture" else STAND

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
