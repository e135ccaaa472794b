"""Compiles this run again with one setting changed, and compares."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from msgspec import structs

from tcw.compiler.control.commands import Rerun
from tcw.viewers.panes import settings as listed
from tcw.viewers.plain import plain
from tcw.workbench.cli.trials import changed_by
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.comparing import Comparing
from tcw.workbench.tui.desk import Controller


@dataclass(eq=False)
class Setting(Controller):
    """The list of settings, and what a cause of the profile suggests."""

    comparing: Comparing

    @command("Compile again with other settings", "comma", shown=",")
    async def settings(self) -> None:
        await self.desk.show("settings")

    def choose(self, name: str, index: int) -> None:
        """Compile again with another choice of a setting, and compare with this run."""
        now = listed.settings_of(self.view)
        if now is not None:
            self._toggle(listed.toggles(now)[name][index])

    def ask_inputs(self) -> None:
        """Compile again with inputs that the reader types."""
        now = listed.settings_of(self.view)
        if now is None:
            return
        words = "; ".join(now.inputs)
        asks = "inputs, such as f32[8,64]; calls divided by ;"
        self.desk.ask_words(asks, words, self._other_inputs)

    def try_suggestion(self, cause: int, place: int) -> None:
        """Compile again with what a cause of the profile suggests, and compare with this run."""
        profile, now = self.view.derived.profile, listed.settings_of(self.view)
        if profile is None or now is None:
            return
        suggestion = profile.causes[cause].suggestions[place]
        changed = changed_by(now, suggestion.options)
        if changed.reason:
            self.desk.say(plain(f"it cannot be tried: {changed.reason}"))
            return
        toggle = listed.Toggle("try", shlex.join(suggestion.options), changed.settings)
        before = now.overrides.items()
        self._toggle(toggle, dict(changed.settings.overrides.items() - before))

    def _other_inputs(self, words: str) -> None:
        now = listed.settings_of(self.view)
        if now is not None:
            self._toggle(listed.with_inputs(now, words))

    def _toggle(self, toggle: listed.Toggle, overrides: dict[str, str] | None = None) -> None:
        """`overrides`: in addition to the wanted ones."""
        now = listed.settings_of(self.view)
        if now is None or toggle.settings == now:
            self.desk.say(f"{plain(toggle.because)} is how this run was made")
            return
        listed_now = self.comparing.overrides.overruled.wanted
        wanted = structs.replace(toggle.settings, overrides={**listed_now, **(overrides or {})})
        waiting = self.view.waiting
        if waiting is not None and waiting.kind == "start":  # nothing to compare it with
            self.comparing.driving.send(Rerun(settings=wanted, because=toggle.because, wait=True))
            return
        self.comparing.rerun_with(wanted, now, toggle.because)
