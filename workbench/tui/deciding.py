"""Answers the decision that waits, and revises those that were taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, partialmethod

from msgspec import structs

from tcw.compiler.protocol.commands import Answer, Breakpoint, Rerun
from tcw.compiler.protocol.decision import Decision
from tcw.compiler.trace.records import AnyRecord, Settings, Warned
from tcw.viewers.panes import decision_bar
from tcw.viewers.plain import plain
from tcw.viewers.summary.decided import as_decision, choice_of
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.compile_again import CompileAgain
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.driving import Driving
from tcw.workbench.tui.overlay import PaletteChoice
from tcw.workbench.tui.overriding import Overriding, because


@dataclass(eq=False)
class Deciding(Controller):
    """`a v f` answer the decision that waits; for one that was taken they offer a new run."""

    driving: Driving
    overriding: Overriding
    again: CompileAgain

    def arrived(self, records: list[AnyRecord]) -> None:
        """Show a refusal of an answer that came with new records."""
        warned = [record for record in records if isinstance(record, Warned) and record.asked]
        if warned and self.view.driven:
            self.desk.say(f"✗ {plain(warned[-1].message)}")

    def _answer(self, choose: Callable[[Decision], str]) -> None:
        view = self.view
        if view.asked is None or view.playhead or not view.driven:
            self._answer_past(choose)
            return
        decision = as_decision(view.asked)
        choice = choose(decision)
        if not choice:
            self._ask_choice(decision, self._send_answer)
            return
        self._send_answer(decision, choice)

    def _send_answer(self, decision: Decision, choice: str) -> None:
        if choice in decision.forbidden:
            rule, reason = decision.forbidden[choice]
            words = f"{rule}: {reason}" if reason else rule
            self.desk.say(f"✗ {plain(choice)} is refused, rule {plain(words)}")
        self.driving.send(Answer(id=decision.id, choice=choice))

    def _ask_choice(self, decision: Decision, then: Callable[[Decision, str], None]) -> None:
        """Let the reader choose from the decision's choices."""
        notes = {decision.default: "the engine's choice"}
        notes |= {
            choice: f"rule {rule} forbids it" for choice, (rule, _) in decision.forbidden.items()
        }
        choices = [
            PaletteChoice(
                f"{number}  {choice}", partial(then, decision, choice), notes.get(choice, "")
            )
            for number, choice in enumerate(decision.choices, start=1)
        ]
        self.desk.choose(choices, f"{decision.kind} of {decision.id.rpartition('/')[2]}")

    @command("Accept the engine's choice", "a")
    def accept(self) -> None:
        asked = self.view.asked
        if asked is None or self.view.playhead or not self.view.driven:
            self._answer_past(lambda decision: decision.default)
        else:  # an empty choice, since `apart` would be a veto
            self.driving.send(Answer(id=asked.id, choice=""))

    def _overrule(self, key: str) -> None:
        asked = self.view.asked if self.view.driven and not self.view.playhead else None
        if asked is not None and decision_bar.choice_of(asked, key) == asked.default:
            self.desk.say(f"{plain(asked.default)} is the engine's own choice: a accepts it")
        else:
            self._answer(lambda decision: decision_bar.choice_of(decision, key))

    veto = command("Veto: choose otherwise", "v")(partialmethod(_overrule, "v"))
    force = command("Force the fusion", "f")(partialmethod(_overrule, "f"))

    # Choosing otherwise

    def _answer_past(self, choose: Callable[[Decision], str]) -> None:
        found = self._answered_here()
        if found is None:
            self.desk.say(
                "no decision waits here, and none is under the cursor: d goes to the next one"
            )
            return
        decision, taken = found
        choice = choose(decision)
        if not choice and len(decision.choices) > 2:
            self._ask_choice(decision, lambda one, chosen: self._revise(one, taken, chosen))
            return
        self._revise(decision, taken, choice)

    def _revise(self, decision: Decision, taken: str, choice: str) -> None:
        if not choice or choice == taken:
            whose = "the engine's choice" if taken == decision.default else "chosen already"
            self.desk.say(f"nothing to change: {plain(taken)} was {whose}")
            return
        if choice in decision.forbidden:
            rule, reason = decision.forbidden[choice]
            self.desk.say(f"✗ refused: rule {plain(rule)}  {plain(reason)}")
            return
        self.desk.choose(self._offers(decision, choice))

    def _offers(self, decision: Decision, choice: str) -> list[PaletteChoice]:
        """The ways to apply another choice."""
        driven = self.view.driven
        if driven:
            compare = f"Compile again with it, and compare with run {self.view.run}"
            stop = "Compile again up to here, and go on stepping"
            late = "Only list it: w compiles again with all that are listed"
        else:
            compare = "Run the file again with it, and compare with this recording"
            stop = "Run the file again up to here, and go on stepping"
            late = "Only list it: W writes it for tcw step --override"
        until = Breakpoint(number=0, kind="decision", id=decision.id)
        words = because({}, {decision.id: choice})
        only = PaletteChoice(f"{late}  {words}", partial(self._list, decision, choice))
        if not driven and self.again.allowed.view_only:
            return [only]
        return [
            PaletteChoice(compare, partial(self._compile, decision, choice)),
            PaletteChoice(stop, partial(self._compile, decision, choice, until)),
            only,
        ]

    def _overrule_taken(self, decision: Decision, choice: str) -> Settings | None:
        """Add the choice to the overrides; return the settings of this run, None if there is no
        run."""
        history = self.overriding.history
        run = history.runs.get(self.view.run) or history.settings
        if run is None:
            return None
        history.wanted.pop(decision.id, None)
        if choice != decision.default:
            history.wanted[decision.id] = choice
        self.overriding.show()
        self.desk.refresh_all()
        return run

    def _list(self, decision: Decision, choice: str) -> None:
        run = self._overrule_taken(decision, choice)
        if run is not None:
            why = because(dict(run.overrides), self.overriding.history.wanted)
            more = "w compiles again with it" if self.view.driven else "W writes it for tcw step"
            self.desk.say(f"{plain(why)}: {more}, u forgets it")

    def _compile(self, decision: Decision, choice: str, until: Breakpoint | None = None) -> None:
        run = self._overrule_taken(decision, choice)
        if run is None:
            return
        wanted = self.overriding.history.wanted
        why = because(dict(run.overrides), wanted)
        settings: Settings = structs.replace(run, overrides=dict(wanted))
        if not self.view.driven:
            self.again.run_again(settings, why, until)
            return
        again = Rerun(settings=settings, because=why, compare_with=self.view.run, until=until)
        if self.driving.send(again):
            self.view.playhead = 0
            self.desk.say(f"compiling again: {plain(why)}")

    def _answered_here(self) -> tuple[Decision, str] | None:
        """The decision at the playhead or under the cursor, with its choice."""
        view = self.view
        asked = view.asked
        shown = self.desk.focus_row.decision_shown
        ids = (asked.id if asked is not None else "", shown, view.pair)
        generator = (choice_of(self.view.recording, id) for id in ids if id)
        return next((one for one in generator if one is not None), None)
