"""What is kept of a model's file from one time to the next: panes, theme, breakpoints."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from compiler.control.commands import Breakpoint
from viewers.kit.theme import THEMES, ThemeName
from viewers.panes.breakpoints import same
from viewers.plain import plain
from workbench.tui.breaking import Breaking
from workbench.tui.desk import Controller
from workbench.tui.driving import Driving
from workbench.tui.layouts import Layouts
from workbench.tui.live_feed import LiveFeed
from workbench.tui.remembered import PaneShares, Remembered, recall, remember


@dataclass(eq=False)
class Remembering(Controller):
    """Recalls when the trace has begun, remembers when the reader leaves."""

    driving: Driving
    breaking: Breaking
    layouts: Layouts
    theme_chosen: bool
    """By an option or the environment; the remembered one gives way."""
    _model: str = ""

    async def choose_theme(self, name: ThemeName) -> None:
        """Use a theme, next time too."""
        self.theme_chosen = False
        await self.desk.use_theme(name)

    async def recall(self) -> None:
        """The trace has begun: it is known what model it is about."""
        start, view, navigator = self.desk.recording.start, self.desk.view, self.desk.navigator
        self._model = start.settings.file if start is not None else ""
        if not self._model:
            return
        found, trouble = recall(self._model)
        if trouble:
            self.desk.say(plain(f"✗ panes and breakpoints are as for a new file: {trouble}"))
        self.layouts.own = {name: one.arrangement() for name, one in found.own.items()}
        self.layouts.turned = found.turned
        self.desk.stage.shares = found.shares
        self.driving.prefer.update(found.prefer)
        if found.breakpoints and view.driven:
            have = view.breakpoints
            new = [one for one in found.breakpoints if not any(same(one, h) for h in have)]
            first = self.breaking.next_number()
            numbered = (structs.replace(one, number=first + i) for i, one in enumerate(new))
            self.breaking.set_breakpoints((*have, *numbered))
        profiled = start is not None and start.settings.profile
        if profiled and not view.driven:
            navigator.arrangement = "profile"
            navigator.grown()
        elif view.compares_traces and not view.driven:
            navigator.go("differences")
        elif view.several is not None:
            navigator.go("ranks")
        if found.theme in THEMES and not self.theme_chosen:
            await self.desk.use_theme(found.theme)

    def _own_breakpoints(self) -> tuple[Breakpoint, ...]:
        """Those that the reader set: what the command line asked for is for this time."""
        feed = self.desk.feed
        given = feed.breakpoints if isinstance(feed, LiveFeed) else ()
        own = (b for b in self.desk.view.breakpoints if not any(same(b, one) for one in given))
        return tuple(own)

    def remember(self) -> None:
        """Write down what the reader leaves."""
        if not self._model:
            return
        driven = self.desk.view.driven
        before, _ = recall(self._model)
        state = Remembered(
            theme=before.theme if self.theme_chosen else self.desk.look.name,
            turned=self.layouts.turned,
            own={name: PaneShares.of(one) for name, one in self.layouts.own.items()},
            shares=self.desk.stage.shares,
            prefer=self.driving.prefer,
            breakpoints=self._own_breakpoints() if driven else before.breakpoints,
        )
        remember(self._model, state)
