"""Overruling what is decided already: the model is compiled again, live or from a trace."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from compiler.control.commands import Breakpoint, Rerun
from compiler.trace.records import Asked, Settings
from viewers.panes.answered import answered, decision_of
from viewers.panes.rows import Row
from viewers.plain import plain
from viewers.recording import Recording
from workbench.tui.again import Plan, Refused, Word, reviewed
from workbench.tui.consent import Consent
from workbench.tui.deciding import Deciding
from workbench.tui.live_feed import LiveFeed
from workbench.tui.overlay import Choice, Palette
from workbench.tui.overruled import because

COMPARE, STOP, LIST = "compare", "stop", "list"
"""What is done about a decision that was chosen otherwise."""


class Revising(Deciding):
    """`a v f` on a decision that is answered offer another run; a trace is run again from its
    file."""

    # Choosing otherwise

    def _answer_past(self, choose: Callable[[Asked], str]) -> None:
        found = self._answered_here()
        if found is None:
            self.say("no decision waits here, and none is under the cursor: d goes to the next one")
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
            self.say(f"it is decided: {plain(taken)} was {whose}")
            return
        forbidden = next((one for one in asked.forbidden if one.choice == choice), None)
        if forbidden is not None:
            self.say(f"✗ refused: rule {plain(forbidden.rule)}  {plain(forbidden.reason)}")
            return
        words = because({}, {asked.id: choice})
        self.app.push_screen(
            Palette(self.look, self._offers(words)),
            lambda answer: self._revised(asked, choice, answer or ""),
        )

    def _offers(self, words: str) -> list[Choice]:
        if self.view.driven:
            compare = f"Compile again with it, and compare with run {self.view.run}"
            stop = "Compile again up to here, and go on stepping"
            late = "Only list it: w compiles again with all that are listed"
        else:
            compare = "Run the file again with it, and compare with this recording"
            stop = "Run the file again up to here, and go on stepping"
            late = "Only list it: W writes it for tcw step --override"
        if not self.view.driven and self.word.view_only:
            return [Choice(LIST, f"{late}  {words}")]
        return [Choice(COMPARE, compare), Choice(STOP, stop), Choice(LIST, f"{late}  {words}")]

    def _revised(self, asked: Asked, choice: str, answer: str) -> None:
        run = self.overruled.runs.get(self.view.run) or self.overruled.settings
        if not answer or run is None:
            return
        wanted = self.overruled.wanted
        wanted.pop(asked.id, None)
        if choice != asked.default:
            wanted[asked.id] = choice
        self._show_overrides()
        self.refresh_all()
        why = because(dict(run.overrides), wanted)
        if answer == LIST:
            more = "w compiles again with it" if self.view.driven else "W writes it for tcw step"
            self.say(f"{plain(why)}: {more}, u forgets it")
            return
        until = Breakpoint(number=0, kind="decision", id=asked.id) if answer == STOP else None
        settings: Settings = structs.replace(run, overrides=dict(wanted))
        if not self.view.driven:
            self.run_again(settings, why, until)
            return
        again = Rerun(settings=settings, because=why, compare_with=self.view.run, until=until)
        if self.send(again):
            self.view.playhead = 0
            self.say(f"compiling again: {plain(why)}")

    def _answered_here(self) -> tuple[Asked, str] | None:
        """The decision at the playhead, or the one under the cursor, with what was chosen."""
        view = self.view
        pane = self.focus_pane()
        row = pane.row if pane is not None else Row()
        asked = view.asked
        ids = (asked.id if asked is not None else "", decision_of(row), view.pair)
        found = (answered(self.view, id) for id in ids if id)
        return next((one for one in found if one is not None), None)

    # From the file

    def run_again(self, wanted: Settings, why: str, until: Breakpoint | None = None) -> None:
        """Drive a compile of the recorded file with other settings, on this screen. What comes
        from a trace is run when the reader has seen it and said yes."""
        try:
            plan = self._plan(wanted)
        except Refused as refused:
            self.app.push_screen(Consent(self.look, str(refused)))
            return
        obstacle = cannot_run(plan.settings)
        if obstacle:
            self.say(plain(f"it cannot be run again: {obstacle}"))
            return

        def kept(words: str) -> None:
            trace = Path(words.strip()).expanduser() if words.strip() else None
            if trace is not None and (trace.exists() or not trace.parent.is_dir()):
                where = "is there already" if trace.exists() else "has no folder"
                self.say(f"{plain(trace.name)} {where}: nothing was run")
            elif not plan.things or self.word.yes:
                self._start(wanted, plan, why, until, trace)
            else:
                self.app.push_screen(
                    Consent(self.look, why, plan.things),
                    lambda yes: (
                        self._start(wanted, plan, why, until, trace)
                        if yes
                        else self.say("nothing was run")
                    ),
                )

        changed = differs(self.recording, plan.settings) if not plan.things else ""
        self.ask_words(f"{plain(changed)}keep the new recording in (empty: nowhere)", "", kept)

    @property
    def word(self) -> Word:
        """What the reader said of traces on the command line."""
        found: Word = self.app.word  # type: ignore[attr-defined]
        return found

    def _plan(self, wanted: Settings) -> Plan:
        """Raises `Refused`."""
        if isinstance(self.feed, LiveFeed):
            return Plan.own(wanted)
        return reviewed(wanted, self.recording, self.word)

    def _start(
        self, wanted: Settings, plan: Plan, why: str, until: Breakpoint | None, trace: Path | None
    ) -> None:
        """The one place where a recording leads to a worker."""
        try:
            if self._plan(wanted) != plan:
                raise Refused("What would run has changed since it was shown")
        except Refused as refused:
            self.app.push_screen(Consent(self.look, str(refused)))
            return
        first = Rerun(settings=plan.settings, because=why, until=until)
        drive = functools.partial(self.app.drives(), first=first)  # type: ignore[attr-defined]
        feed = LiveFeed(drive, plan.settings, trace, self.view.breakpoints)
        live = type(self)(feed, self.look)
        self.view.playhead = 0
        self.show_facts()
        live.recorded = self.view.facts
        live.view.breakpoints = self.view.breakpoints
        live.overruled.settled = dict(self.overruled.kept)
        self.handing_over(live)
        self.app.switch_screen(live)

    def handing_over(self, live: Revising) -> None:
        """Another screen takes the place of this one."""


def cannot_run(settings: Settings) -> str:
    """What keeps a recorded file from being run on this machine; "" for nothing."""
    if not Path(settings.file).is_file():
        return f"{settings.file} is not here"
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed here"
    return ""


def differs(recording: Recording, settings: Settings) -> str:
    """Words for a prompt where the file is not as it was recorded; "" where it is."""
    recorded = recording.source(settings.file)
    name = Path(settings.file).name
    if not recorded:
        return f"the recording has no text of {name} to compare; "
    try:
        text = Path(settings.file).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        return f"{name}: {error.strerror or error}; "
    now = Recording.lines_of(text)
    return "" if now == recorded else f"{name} has changed since it was recorded; "
