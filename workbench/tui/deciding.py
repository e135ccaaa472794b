"""Deciding: answers, what-ifs, measurements, the overrides and their file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from compiler.control.commands import Answer, Breakpoint, Measure, Rerun
from compiler.control.decisions import APART, OverrideError, read_overrides
from compiler.output_file import check, write
from compiler.trace.records import AnyRecord, Asked, Run, Settings, Warned
from viewers.panes import decision_bar, settings
from viewers.panes.view import Facts
from viewers.plain import plain
from viewers.words import plural
from workbench.cli.trials import changed_by
from workbench.tui.again import plain_name
from workbench.tui.driving import Driving
from workbench.tui.live_feed import LiveFeed
from workbench.tui.overlay import Choice, Palette
from workbench.tui.overruled import OVERRIDES, Overruled, because, replay_command, to_toml

DEFAULT_FILE = "overrides.toml"


class Deciding(Driving):
    """`a v f` answer; `w M K u O W` are about what was overruled."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.overruled = Overruled()
        self.view.overrides = self.overruled.wanted
        self._leaving = False
        self.recorded: Facts | None = None
        """A recording that was run again here: runs without another base are compared with it."""

    async def arrived(self, records: list[AnyRecord]) -> None:
        self.overruled.see(records)
        self._show_overrides()
        if any(isinstance(record, Run) for record in records):
            self._compare()
        await super().arrived(records)
        warned = [one for one in records if isinstance(one, Warned) and one.asked]
        if warned and self.view.driven:
            self.say(f"✗ {plain(warned[-1].message)}")

    def _show_overrides(self) -> None:
        self.view.overrides = self.overruled.wanted
        self.view.kept = self.overruled.kept

    def _compare(self) -> None:
        """Have the view know the run that its run is compared with."""
        runs = {run.number: run for run in self.recording.all(Run)}
        run = runs.get(self.view.run)
        base = self.facts_of_run(run.compared_with) if run is not None else None
        self.view.base = base or (self.recorded if run is not None else None)

    # Answers

    def _answer(self, choose: Callable[[Asked], str]) -> None:
        view = self.view
        asked = view.asked
        if asked is None or view.playhead or not view.driven:
            self._answer_past(choose)
            return
        choice = choose(asked)
        if not choice:
            self._ask_choice(asked, self._send_answer)
            return
        self._send_answer(asked, choice)

    def _send_answer(self, asked: Asked, choice: str) -> None:
        forbidden = next((one for one in asked.forbidden if one.choice == choice), None)
        if forbidden is not None:
            reason = f": {forbidden.reason}" if forbidden.reason else ""
            self.say(f"✗ {plain(choice)} is refused, rule {plain(f'{forbidden.rule}{reason}')}")
        self.send(Answer(id=asked.id, choice=choice))

    def _ask_choice(self, asked: Asked, then: Callable[[Asked, str], None]) -> None:
        """Several other choices: a list to choose from."""
        notes = {asked.default: "the engine's choice"}
        notes |= {one.choice: f"rule {one.rule} forbids it" for one in asked.forbidden}
        choices = [
            Choice(f"choice:{choice}", f"{number}  {choice}", notes.get(choice, ""))
            for number, choice in enumerate(asked.choices, start=1)
        ]

        def chosen(answer: str | None) -> None:
            if answer:
                then(asked, answer.removeprefix("choice:"))

        asks = f"{asked.kind} of {asked.id.rpartition('/')[2]}"
        self.app.push_screen(Palette(self.look, choices, asks), chosen)

    def do_accept(self) -> None:
        asked = self.view.asked
        if asked is None or self.view.playhead or not self.view.driven:
            self._answer_past(lambda asked: asked.default)
        else:  # no choice of a person's: to choose `apart` would be a veto
            self.send(Answer(id=asked.id, choice=""))

    def do_veto(self) -> None:
        self._overrule("v")

    def do_force(self) -> None:
        self._overrule("f")

    def _overrule(self, key: str) -> None:
        asked = self.view.asked if self.view.driven and not self.view.playhead else None
        if asked is not None and decision_bar.choice_of(asked, key) == asked.default:
            self.say(f"{plain(asked.default)} is the engine's own choice: a accepts it")
        else:
            self._answer(lambda one: decision_bar.choice_of(one, key))

    def _answer_past(self, choose: Callable[[Asked], str]) -> None:
        raise NotImplementedError

    # What if

    def _settings(self, overrides: dict[str, str]) -> Settings | None:
        last = self.overruled.settings
        if last is None:
            return None
        wanted: Settings = structs.replace(last, overrides=dict(overrides))
        return wanted

    def do_what_if(self) -> None:
        """Compile again with the overrides, and compare with a run without those that are new.

        Where none is new, and a decision waits: with its other choice.
        """
        overruled, asked = self.overruled, self.view.asked
        new = overruled.wanted != overruled.kept
        if asked is not None and not self.view.playhead and not new:
            choice = decision_bar.choice_of(asked, "v" if asked.default != APART else "f")
            against = next((one for one in asked.forbidden if one.choice == choice), None)
            if against is not None:
                reason = f": {against.reason}" if against.reason else ""
                said = plain(f"{choice} is forbidden by rule {against.rule}{reason}")
                self.say(f"no what-if here: {said}")
                return
            if choice:
                overruled.wanted[asked.id] = choice
                self._show_overrides()
        self.rerun(dict(overruled.wanted), because(overruled.kept, overruled.wanted))

    def rerun(self, overrides: dict[str, str], why: str) -> None:
        """A run with these overrides, after one of those that are kept, where there is none."""
        wanted, base = self._settings(overrides), self._settings(self.overruled.kept)
        if wanted is None or base is None:
            self.say("nothing is recorded yet")
        elif wanted == base:
            self.say("nothing is overruled: v or f at a decision does, d goes to the next one")
        else:
            self.rerun_with(wanted, base, why)

    def rerun_with(self, wanted: Settings, base: Settings, why: str) -> None:
        """Compile with `wanted` and compare with a run of `base`, which may have to be made."""
        if not self.view.driven:
            self.run_again(wanted, why)
            return
        with_base, number = self.overruled.run_with(base), self.overruled.next_run
        if not with_base:
            if not self.send(Rerun(settings=base, because="as it was, to compare with")):
                return
            with_base = number
        if self.send(Rerun(settings=wanted, because=why, compare_with=with_base)):
            self.view.playhead = 0
            self.say(f"compiling again: {plain(why)}")

    def profile_again(self) -> None:
        """A run that takes a call apart when it is over."""
        wanted = self._settings(dict(self.overruled.wanted))
        if wanted is None:
            self.say("nothing is recorded yet")
            return
        wanted = structs.replace(wanted, profile=True, until="run")
        if self.send(Rerun(settings=wanted, because="profile")):
            self.view.playhead = 0
            self.say("compiling again, then a call is taken apart")

    def run_again(self, wanted: Settings, why: str, until: Breakpoint | None = None) -> None:
        raise NotImplementedError

    def do_measure(self) -> None:
        """Time whole calls of this run and of the one that it is compared with."""
        runs = {run.number: run for run in self.recording.all(Run)}
        run = runs.get(self.view.run)
        if run is None or not run.compared_with:
            self.say("nothing to compare this run with: w makes a run with the overrides")
        elif self.send(Measure(base=run.compared_with, run=run.number, scope="call")):
            self.say(f"timing whole calls of run {run.compared_with} and run {run.number}")

    def do_keep(self) -> None:
        """Take the overrides as settled: the next what-if is compared with them."""
        if self.overruled.wanted == self.overruled.kept:
            self.say("no override is new")
            return
        self.overruled.kept = dict(self.overruled.wanted)
        self._show_overrides()
        self.refresh_all()
        self.say(f"kept {plural(len(self.overruled.kept), 'override')}; W writes them to a file")

    def do_undo(self) -> None:
        id = self.overruled.undo()
        self._forgot(id)

    def forget_override(self, id: str) -> None:
        self.overruled.wanted.pop(id, None)
        self._forgot(id)

    def _forgot(self, id: str) -> None:
        self.overruled.kept.pop(id, None)
        self._show_overrides()
        self.refresh_all()
        words = f"forgot {plain(id)}: the next run is without it" if id else "nothing is overruled"
        self.say(words)

    async def do_overrides(self) -> None:
        await self.show("overrides")

    async def do_settings(self) -> None:
        await self.show("settings")

    def choose_setting(self, key: str) -> None:
        """Compile again with another choice of a setting, and compare with this run."""
        name, _, index = key.rpartition(":")
        now = settings.settings_of(self.view)
        if now is None:
            return
        if index == "other":
            words = "; ".join(now.inputs)
            self.ask_words(
                "inputs, such as f32[8,64]; calls divided by ;", words, self._other_inputs
            )
            return
        self._toggle(settings.toggles(now)[name][int(index)])

    def try_suggestion(self, key: str) -> None:
        """Compile again with what a cause of the profile suggests, and compare with this run."""
        cause, _, place = key.partition(":")
        profile, now = self.view.facts.profile, settings.settings_of(self.view)
        if profile is None or now is None:
            return
        suggestion = profile.causes[int(cause)].suggestions[int(place)]
        changed = changed_by(now, suggestion.options)
        if changed.reason:
            self.say(plain(f"it cannot be tried: {changed.reason}"))
            return
        toggle = settings.Toggle("try", shlex.join(suggestion.options), changed.settings)
        before = now.overrides.items()
        self._toggle(toggle, dict(changed.settings.overrides.items() - before))

    def _other_inputs(self, words: str) -> None:
        now = settings.settings_of(self.view)
        if now is not None:
            self._toggle(settings.with_inputs(now, words))

    def _toggle(self, toggle: settings.Toggle, overrides: dict[str, str] | None = None) -> None:
        """`overrides`: further ones than those that are wanted."""
        now = settings.settings_of(self.view)
        if now is None or toggle.settings == now:
            self.say(f"{plain(toggle.because)} is how this run was made")
            return
        wanted = structs.replace(
            toggle.settings, overrides={**self.overruled.wanted, **(overrides or {})}
        )
        waiting = self.view.waiting
        if waiting is not None and waiting.kind == "start":  # nothing to compare it with
            self.send(Rerun(settings=wanted, because=toggle.because, wait=True))
            return
        self.rerun_with(wanted, now, toggle.because)

    # The file

    def do_write(self) -> None:
        last = self.overruled.settings
        if last is None or not self.overruled.wanted:
            self.say("nothing is overruled: there is nothing to write")
            return
        own = isinstance(self.feed, LiveFeed)  # a trace's folder may be another's
        default = Path(last.file).parent / DEFAULT_FILE if own else Path(DEFAULT_FILE)
        self.ask_words("write overrides to", str(default), self._write)

    def _write(self, words: str, over: bool = False) -> None:
        last = self.overruled.settings
        if not words or last is None:
            return
        file = Path(os.path.expanduser(words))
        try:
            check(file, OVERRIDES)
            if not over and file.exists() and not self._ours(file):
                self.ask_words(
                    f"{plain(file.name)} is there: type y to write over it",
                    "",
                    lambda said: (
                        self._write(words, True) if said == "y" else self.say("not written")
                    ),
                )
                return
            write(file, to_toml(self.overruled.wanted).encode(), OVERRIDES)
        except OSError as error:
            self.say(f"{plain(words)}: {plain(error.strerror or str(error))}")
            return
        self.overruled.written = dict(self.overruled.wanted)
        if not isinstance(self.feed, LiveFeed) and not plain_name(last.model):
            self.say(f"wrote {plain(file.name)}: the trace's --model is an expression, not copied")
            return
        self.offer(replay_command(last, file))
        self.say(f"wrote {plain(file.name)}   y copies  {plain(self.offered)}")

    def _ours(self, file: Path) -> bool:
        """Whether the file holds nothing but what was written or read before."""
        try:
            return read_overrides(file) in (self.overruled.written, self.overruled.wanted)
        except OverrideError:
            return False

    # Leaving

    def may_leave(self) -> bool:
        """Whether to quit; asks once where overrides would be lost."""
        if self._leaving or not self.overruled.unsaved:
            return True
        self._leaving = True
        count = plural(len(self.overruled.wanted), "override")
        self.say(f"{count} not written: W writes, q again quits without")
        return False

    def other_key(self, name: str) -> None:
        """Any other key takes the question back."""
        if name not in ("quit", "stop"):
            self._leaving = False
