"""Deciding: the answer to a decision that waits, and other answers to those that are taken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import structs

from compiler.control.commands import Answer, Breakpoint, Rerun
from compiler.trace.records import AnyRecord, Asked, Settings, Warned
from viewers.panes import decision_bar
from viewers.panes.answered import answered, decision_of
from viewers.panes.rows import Row
from viewers.panes.view import View
from viewers.plain import plain
from workbench.tui.commands import command
from workbench.tui.desk import Desk
from workbench.tui.driving import Driving
from workbench.tui.overlay import Choice
from workbench.tui.overrides import Overrides
from workbench.tui.overruled import because
from workbench.tui.running_again import RunningAgain


class Deciding:
    """`a v f` answer where the compile waits; on a decision that is taken they offer a new run."""

    def __init__(
        self, desk: Desk, driving: Driving, overrides: Overrides, again: RunningAgain
    ) -> None:
        self.desk = desk
        self.driving = driving
        self.overrides = overrides
        self.again = again

    @property
    def view(self) -> View:
        return self.desk.view

    def arrived(self, records: list[AnyRecord]) -> None:
        """Records have come: an answer may be refused."""
        warned = [one for one in records if isinstance(one, Warned) and one.asked]
        if warned and self.view.driven:
            self.desk.say(f"✗ {plain(warned[-1].message)}")

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
            self.desk.say(
                f"✗ {plain(choice)} is refused, rule {plain(f'{forbidden.rule}{reason}')}"
            )
        self.driving.send(Answer(id=asked.id, choice=choice))

    def _ask_choice(self, asked: Asked, then: Callable[[Asked, str], None]) -> None:
        """Several other choices: a list to choose from."""
        notes = {asked.default: "the engine's choice"}
        notes |= {one.choice: f"rule {one.rule} forbids it" for one in asked.forbidden}
        choices = [
            Choice(f"{number}  {choice}", partial(then, asked, choice), notes.get(choice, ""))
            for number, choice in enumerate(asked.choices, start=1)
        ]
        self.desk.choose(choices, f"{asked.kind} of {asked.id.rpartition('/')[2]}")

    @command("Accept the engine's choice", "a")
    def accept(self) -> None:
        asked = self.view.asked
        if asked is None or self.view.playhead or not self.view.driven:
            self._answer_past(lambda asked: asked.default)
        else:  # no choice of a person's: to choose `apart` would be a veto
            self.driving.send(Answer(id=asked.id, choice=""))

    @command("Veto: choose otherwise", "v")
    def veto(self) -> None:
        self._overrule("v")

    @command("Force the fusion", "f")
    def force(self) -> None:
        self._overrule("f")

    def _overrule(self, key: str) -> None:
        asked = self.view.asked if self.view.driven and not self.view.playhead else None
        if asked is not None and decision_bar.choice_of(asked, key) == asked.default:
            self.desk.say(f"{plain(asked.default)} is the engine's own choice: a accepts it")
        else:
            self._answer(lambda one: decision_bar.choice_of(one, key))

    # Choosing otherwise

    def _answer_past(self, choose: Callable[[Asked], str]) -> None:
        found = self._answered_here()
        if found is None:
            self.desk.say(
                "no decision waits here, and none is under the cursor: d goes to the next one"
            )
            return
        asked, taken = found
        choice = choose(asked)
        if not choice and len(asked.choices) > 2:
            self._ask_choice(asked, lambda one, chosen: self._revise(one, taken, chosen))
            return
        self._revise(asked, taken, choice)

    def _revise(self, asked: Asked, taken: str, choice: str) -> None:
        if not choice or choice == taken:
            whose = "the engine's choice" if taken == asked.default else "chosen already"
            self.desk.say(f"it is decided: {plain(taken)} was {whose}")
            return
        forbidden = next((one for one in asked.forbidden if one.choice == choice), None)
        if forbidden is not None:
            self.desk.say(f"✗ refused: rule {plain(forbidden.rule)}  {plain(forbidden.reason)}")
            return
        self.desk.choose(self._offers(asked, choice))

    def _offers(self, asked: Asked, choice: str) -> list[Choice]:
        """What can be done about a decision that is chosen otherwise."""
        driven = self.view.driven
        if driven:
            compare = f"Compile again with it, and compare with run {self.view.run}"
            stop = "Compile again up to here, and go on stepping"
            late = "Only list it: w compiles again with all that are listed"
        else:
            compare = "Run the file again with it, and compare with this recording"
            stop = "Run the file again up to here, and go on stepping"
            late = "Only list it: W writes it for tcw step --override"
        until = Breakpoint(number=0, kind="decision", id=asked.id)
        words = because({}, {asked.id: choice})
        only = Choice(f"{late}  {words}", partial(self._list, asked, choice))
        if not driven and self.again.word.view_only:
            return [only]
        return [
            Choice(compare, partial(self._compile, asked, choice)),
            Choice(stop, partial(self._compile, asked, choice, until)),
            only,
        ]

    def _overruled(self, asked: Asked, choice: str) -> Settings | None:
        """Take the choice into the overrides; the settings of this run, None for no run."""
        overruled = self.overrides.overruled
        run = overruled.runs.get(self.view.run) or overruled.settings
        if run is None:
            return None
        overruled.wanted.pop(asked.id, None)
        if choice != asked.default:
            overruled.wanted[asked.id] = choice
        self.overrides.show()
        self.desk.refresh_all()
        return run

    def _list(self, asked: Asked, choice: str) -> None:
        run = self._overruled(asked, choice)
        if run is not None:
            why = because(dict(run.overrides), self.overrides.overruled.wanted)
            more = "w compiles again with it" if self.view.driven else "W writes it for tcw step"
            self.desk.say(f"{plain(why)}: {more}, u forgets it")

    def _compile(self, asked: Asked, choice: str, until: Breakpoint | None = None) -> None:
        run = self._overruled(asked, choice)
        if run is None:
            return
        wanted = self.overrides.overruled.wanted
        why = because(dict(run.overrides), wanted)
        settings: Settings = structs.replace(run, overrides=dict(wanted))
        if not self.view.driven:
            self.again.run_again(settings, why, until)
            return
        again = Rerun(settings=settings, because=why, compare_with=self.view.run, until=until)
        if self.driving.send(again):
            self.view.playhead = 0
            self.desk.say(f"compiling again: {plain(why)}")

    def _answered_here(self) -> tuple[Asked, str] | None:
        """The decision at the playhead, or the one under the cursor, with what was chosen."""
        view = self.view
        pane = self.desk.focus_pane()
        row = pane.row if pane is not None else Row()
        asked = view.asked
        ids = (asked.id if asked is not None else "", decision_of(row), view.pair)
        found = (answered(self.view, id) for id in ids if id)
        return next((one for one in found if one is not None), None)
