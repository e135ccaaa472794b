"""The palette of all commands, the help, and quitting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tcw.compiler.trace.records import Run
from tcw.viewers.kit.theme import THEMES
from tcw.workbench.tui import help as help_text
from tcw.workbench.tui.breaking import Breaking
from tcw.workbench.tui.commands import Commands, command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.driving import Driving
from tcw.workbench.tui.hints import GOES
from tcw.workbench.tui.layouts import Layouts
from tcw.workbench.tui.overlay import Help, PaletteChoice
from tcw.workbench.tui.overrides import Overrides
from tcw.workbench.tui.remembering import Remembering
from tcw.workbench.tui.turning import Turning

ELSEWHERE = (
    ("Write a report", "text html markdown json pdf",
     "in a shell: tcw explain TRACE prints the report, --json as JSON"),
)  # fmt: skip
"""What is done outside the workbench: (entry, words that also find it, how to do it)."""
MOST_COMPILES = 500
"""The palette lists no more compiles than this."""


@dataclass(eq=False)
class Tool(Controller):
    """`? : q`."""

    commands: Commands
    turning: Turning
    driving: Driving
    breaking: Breaking
    overrides: Overrides
    layouts: Layouts
    remembering: Remembering

    @command("Show help", "question_mark", shown="?")
    def help(self) -> None:
        pane = self.desk.focus_pane()
        name = pane.content.name if pane else "tcw"
        lines = help_text.lines(self.commands, self.desk.focus_name, name)
        self.desk.app.push_screen(Help(self.desk.look, lines))

    @command("Show all commands", "colon", shown=":")
    def palette(self) -> None:
        self.desk.choose(self.choices())

    def choices(self) -> list[PaletteChoice]:
        """The entries of the palette."""
        view = self.view
        choices = [PaletteChoice(words, partial(self._go, name)) for name, words in GOES]
        choices += [PaletteChoice(c.words, c.run, c.shown, c.also) for c in self.commands.all]
        choices += [
            PaletteChoice(words, partial(self.desk.say, said), also=also)
            for words, also, said in ELSEWHERE
        ]
        choices += self.breaking.choices("b")
        if len(view.track.runs) > 1:
            for run in self.desk.recording.all(Run):
                said = f": {run.because}" if run.because else ""
                turn = partial(self.turning.turn_to_run, run.number)
                choices.append(PaletteChoice(f"Look at run {run.number}{said}", turn))
        choices += self.layouts.pane_choices()
        choices += [
            PaletteChoice(f"Use the {name} theme", partial(self.remembering.choose_theme, name))
            for name in THEMES
        ]
        for piece in list(view.derived.pieces.values())[:MOST_COMPILES]:
            name = f"line {piece.resumes_at}" if piece.resumes_at else piece.function
            look = partial(self._compile, piece.compile_id)
            choices.append(PaletteChoice(f"Look at {piece.compile_id} {name}", look))
        return choices

    async def _go(self, arrangement: str) -> None:
        self.desk.navigator.go(arrangement, self.desk.focus_name)
        await self.desk.rebuild()

    def _compile(self, compile_id: str) -> None:
        self.desk.navigator.compile(compile_id)
        self.desk.refresh_all()

    @command("Quit", "q")
    def quit(self) -> None:
        if self.overrides.may_leave():
            self.remembering.remember()
            self.desk.app.exit(return_code=0)

    @command("Stop the recording; again, quit", "ctrl+c", shown="ctrl-c")
    def stop(self) -> None:
        """The first time, end the recording; the second time, quit."""
        if not self.driving.stop():
            self.quit()
