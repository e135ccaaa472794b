"""Keeps the panes, theme and breakpoints of a model's file for the next session."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from tcw.compiler.control.commands import Breakpoint
from tcw.viewers.kit.theme import THEMES, ThemeName
from tcw.viewers.panes.breakpoints import same
from tcw.viewers.plain import plain
from tcw.workbench.tui.breaking import Breaking
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.driving import Driving
from tcw.workbench.tui.layouts import Layouts
from tcw.workbench.tui.live_feed import LiveFeed
from tcw.workbench.tui.remembered import PaneShares, Remembered, recall, remember


@dataclass(eq=False)
class Remembering(Controller):
    """Restores when the trace begins, saves when the reader leaves."""

    driving: Driving
    breaking: Breaking
    layouts: Layouts
    theme_chosen: bool
    """Whether an option or the environment set the theme, which wins over the remembered one."""
    _model: str = ""

    async def choose_theme(self, name: ThemeName) -> None:
        """Use a theme, also in the next session."""
        self.theme_chosen = False
        await self.desk.use_theme(name)

    async def recall(self) -> None:
        """Restore what is remembered of the model's file, which the beginning of the trace
        names."""
        settings, view, navigator = self.desk.recording.settings, self.view, self.desk.navigator
        self._model = settings.file if settings is not None else ""
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
        profiled = settings is not None and settings.profile
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
        """The breakpoints that the reader set; those of the command line are not remembered."""
        feed = self.desk.feed
        given = feed.breakpoints if isinstance(feed, LiveFeed) else ()
        own = (b for b in self.view.breakpoints if not any(same(b, one) for one in given))
        return tuple(own)

    def remember(self) -> None:
        """Save the reader's state."""
        if not self._model:
            return
        driven = self.view.driven
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
