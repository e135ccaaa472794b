"""Another run: with the overrides or one setting changed, compared with the run before it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from msgspec import structs

from tcw.compiler.protocol.commands import Measure, Rerun
from tcw.compiler.protocol.decision import APART
from tcw.compiler.trace.records import Run, Settings
from tcw.viewers.panes import decision_bar
from tcw.viewers.panes import settings as listed
from tcw.viewers.plain import plain
from tcw.workbench.request.options import changed_by
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.compile_again import CompileAgain
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.driving import Driving
from tcw.workbench.tui.overriding import Overriding, because


@dataclass(eq=False)
class Comparing(Controller):
    """`w M ,`: runs side by side, and the list of settings."""

    driving: Driving
    overriding: Overriding
    again: CompileAgain

    def _settings(self, overrides: dict[str, str]) -> Settings | None:
        last = self.overriding.history.settings
        return None if last is None else structs.replace(last, overrides=dict(overrides))

    @command("What if: compile again with the overrides, and compare", "w")
    def what_if(self) -> None:
        """Compile again with the overrides, and compare with a run without those that are new.

        Where none is new, and a decision waits: with its other choice.
        """
        history, asked = self.overriding.history, self.view.asked
        new = history.wanted != history.kept
        if asked is not None and not self.view.playhead and not new:
            choice = decision_bar.choice_of(asked, "v" if asked.default != APART else "f")
            against = next(
                (forbidden for forbidden in asked.forbidden if forbidden.choice == choice), None
            )
            if against is not None:
                reason = f": {against.reason}" if against.reason else ""
                said = plain(f"{choice} is forbidden by rule {against.rule}{reason}")
                self.desk.say(f"no what-if here: {said}")
                return
            if choice:
                history.wanted[asked.id] = choice
                self.overriding.show()
        self.rerun(dict(history.wanted), because(history.kept, history.wanted))

    def rerun(self, overrides: dict[str, str], why: str) -> None:
        """A run with these overrides, after one of those that are kept, if there is none."""
        wanted, base = self._settings(overrides), self._settings(self.overriding.history.kept)
        if wanted is None or base is None:
            self.desk.say("nothing is recorded yet")
        elif wanted == base:
            self.desk.say(
                "nothing is overridden: v or f at a decision overrides it, d goes to the next"
            )
        else:
            self.rerun_with(wanted, base, why)

    def rerun_with(self, wanted: Settings, base: Settings, why: str) -> None:
        """Compile with `wanted` and compare with a run of `base`, which may have to be made."""
        if not self.view.driven:
            self.again.run_again(wanted, why)
            return
        with_base, number = (
            self.overriding.history.run_with(base),
            self.overriding.history.next_run,
        )
        if not with_base:
            if not self.driving.send(Rerun(settings=base, because="as it was, to compare with")):
                return
            with_base = number
        if self.driving.send(Rerun(settings=wanted, because=why, compare_with=with_base)):
            self.view.playhead = 0
            self.desk.say(f"compiling again: {plain(why)}")

    def profile_again(self) -> None:
        """A run that takes a call apart when it is over."""
        wanted = self._settings(dict(self.overriding.history.wanted))
        if wanted is None:
            self.desk.say("nothing is recorded yet")
            return
        wanted = structs.replace(wanted, profile=True, until="run")
        if self.driving.send(Rerun(settings=wanted, because="profile")):
            self.view.playhead = 0
            self.desk.say("compiling again, then a call is taken apart")

    @command("Measure whole calls of both runs", "M")
    def measure(self) -> None:
        """Time whole calls of this run and of the one that it is compared with."""
        runs = {run.number: run for run in self.desk.recording.all(Run)}
        run = runs.get(self.view.run)
        if run is None or not run.compared_with:
            self.desk.say("nothing to compare this run with: w makes a run with the overrides")
        elif self.driving.send(Measure(base=run.compared_with, run=run.number, scope="call")):
            self.desk.say(f"timing whole calls of run {run.compared_with} and run {run.number}")

    # Other settings

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
        listed_now = self.overriding.history.wanted
        wanted = structs.replace(toggle.settings, overrides={**listed_now, **(overrides or {})})
        waiting = self.view.waiting
        if waiting is not None and waiting.kind == "start":  # nothing to compare it with
            self.driving.send(Rerun(settings=wanted, because=toggle.because, wait=True))
            return
        self.rerun_with(wanted, now, toggle.because)
