"""Compiling a recorded file again, on a screen in place of this one."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tcw.compiler.protocol.commands import Breakpoint, Rerun
from tcw.compiler.trace.records import Settings
from tcw.viewers.plain import plain
from tcw.viewers.recording import Recording, lines_of
from tcw.workbench import linux
from tcw.workbench.tui.compile_plan import Allowed, CompilePlan, RunRefused, reviewed
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.feed import LiveFeed
from tcw.workbench.tui.overlay import Consent


@dataclass(eq=False)
class CompileAgain(Controller):
    """The only way from a recording to a worker: reviewed, shown, and run with the reader's
    consent."""

    hand_over: Callable[[LiveFeed], None]
    """Drives a compile, on a screen in place of this one."""

    @property
    def allowed(self) -> Allowed:
        """What the reader allowed traces to run, on the command line."""
        found: Allowed = self.desk.app.allowed  # type: ignore[attr-defined]
        return found

    def run_again(self, wanted: Settings, why: str, until: Breakpoint | None = None) -> None:
        """Drive a compile of the recorded file with other settings. Code that a trace names runs
        only after the reader has seen it and agreed."""
        desk = self.desk
        try:
            plan = self._plan(wanted)
        except RunRefused as refused:
            desk.app.push_screen(Consent(desk.look, str(refused)))
            return
        obstacle = cannot_run(plan.settings)
        if obstacle:
            desk.say(plain(f"cannot run it again: {obstacle}"))
            return

        def kept(words: str) -> None:
            trace = Path(words.strip()).expanduser() if words.strip() else None
            if trace is not None and (trace.exists() or not trace.parent.is_dir()):
                where = "exists already" if trace.exists() else "has no folder"
                desk.say(f"{plain(trace.name)} {where}: nothing was run")
            elif not plan.lines or self.allowed.yes:
                self._start(wanted, plan, why, until, trace)
            else:
                desk.app.push_screen(
                    Consent(desk.look, why, plan.lines),
                    lambda yes: (
                        self._start(wanted, plan, why, until, trace)
                        if yes
                        else desk.say("nothing was run")
                    ),
                )

        changed = differs(desk.recording, plan.settings) if not plan.lines else ""
        desk.ask_words(f"{plain(changed)}keep the new recording in (empty: nowhere)", "", kept)

    def _plan(self, wanted: Settings) -> CompilePlan:
        """Raises `RunRefused`."""
        if isinstance(self.desk.feed, LiveFeed):
            return CompilePlan(wanted)
        return reviewed(wanted, self.desk.recording, self.allowed)

    def _start(
        self,
        wanted: Settings,
        plan: CompilePlan,
        why: str,
        until: Breakpoint | None,
        trace: Path | None,
    ) -> None:
        """The only place that starts a worker for a recording."""
        desk = self.desk
        try:
            if self._plan(wanted) != plan:
                raise RunRefused("What would run has changed since it was shown")
        except RunRefused as refused:
            desk.app.push_screen(Consent(desk.look, str(refused)))
            return
        first = Rerun(settings=plan.settings, because=why, until=until)
        drive = functools.partial(desk.app.drives(), first=first)  # type: ignore[attr-defined]
        self.hand_over(LiveFeed(drive, plan.settings, trace, desk.view.breakpoints))


def cannot_run(settings: Settings) -> str:
    """Why a recorded file cannot run on this machine; "" if it can."""
    if not Path(settings.file).is_file():
        return f"{settings.file} is not here"
    if obstacle := linux.why_not():
        return obstacle
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed here"
    return ""


def differs(recording: Recording, settings: Settings) -> str:
    """A warning for the prompt if the file differs from the recorded one, else ""."""
    recorded = recording.source(settings.file)
    name = Path(settings.file).name
    if not recorded:
        return f"the recording has no text of {name} to compare; "
    try:
        text = Path(settings.file).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        return f"{name}: {error.strerror or error}; "
    now = lines_of(text)
    return "" if now == recorded else f"{name} has changed since it was recorded; "
