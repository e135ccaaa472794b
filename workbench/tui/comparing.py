"""What if: another run with the overrides, compared with one without; whole calls timed."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from tcw.compiler.control.commands import Measure, Rerun
from tcw.compiler.control.decisions import APART
from tcw.compiler.trace.records import Run, Settings
from tcw.viewers.panes import decision_bar
from tcw.viewers.plain import plain
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.driving import Driving
from tcw.workbench.tui.overrides import Overrides
from tcw.workbench.tui.overruled import because
from tcw.workbench.tui.running_again import RunningAgain


@dataclass(eq=False)
class Comparing(Controller):
    """`w M`: runs side by side."""

    driving: Driving
    overrides: Overrides
    again: RunningAgain

    def _settings(self, overrides: dict[str, str]) -> Settings | None:
        last = self.overrides.overruled.settings
        return None if last is None else structs.replace(last, overrides=dict(overrides))

    @command("What if: compile again with the overrides, and compare", "w")
    def what_if(self) -> None:
        """Compile again with the overrides, and compare with a run without those that are new.

        Where none is new, and a decision waits: with its other choice.
        """
        overruled, asked = self.overrides.overruled, self.view.asked
        new = overruled.wanted != overruled.kept
        if asked is not None and not self.view.playhead and not new:
            choice = decision_bar.choice_of(asked, "v" if asked.default != APART else "f")
            against = next((one for one in asked.forbidden if one.choice == choice), None)
            if against is not None:
                reason = f": {against.reason}" if against.reason else ""
                said = plain(f"{choice} is forbidden by rule {against.rule}{reason}")
                self.desk.say(f"no what-if here: {said}")
                return
            if choice:
                overruled.wanted[asked.id] = choice
                self.overrides.show()
        self.rerun(dict(overruled.wanted), because(overruled.kept, overruled.wanted))

    def rerun(self, overrides: dict[str, str], why: str) -> None:
        """A run with these overrides, after one of those that are kept, if there is none."""
        wanted, base = self._settings(overrides), self._settings(self.overrides.overruled.kept)
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
            self.overrides.overruled.run_with(base),
            self.overrides.overruled.next_run,
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
        wanted = self._settings(dict(self.overrides.overruled.wanted))
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
