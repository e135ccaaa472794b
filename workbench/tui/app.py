"""`tcw open` and `tcw step`: the terminal workbench on a trace, or on a compile that it drives."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from textual.app import App

from compiler.control.commands import Breakpoint
from compiler.trace.records import Settings
from viewers.plain import plain
from viewers.teaching.predict import QUESTIONS
from workbench.tui.bench import Bench
from workbench.tui.feed import Feed, FileFeed
from workbench.tui.live_feed import LiveFeed, Starts
from workbench.tui.theme import THEMES, Theme, ThemeName


class Workbench(App[None]):
    """Textual's own palette and bindings are off: `commands.py` has every key."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "tcw"

    def __init__(
        self,
        source: Path | Feed,
        theme: ThemeName | None = None,
        predict: bool = False,
        drive: Starts | None = None,
        questions: int = QUESTIONS,
    ) -> None:
        colourless = theme == "mono" or (theme is None and "NO_COLOR" in os.environ)
        super().__init__(ansi_color=colourless)
        self.look: Theme = THEMES["mono" if colourless else theme or "dark"]
        self.feed: Feed = FileFeed(source) if isinstance(source, Path) else source
        self.theme_chosen = theme is not None or colourless
        self.predict = predict
        """The reader guesses each fusion before it is shown."""
        self.questions = questions
        """How many guesses about one graph; 0 for every pair."""
        self.drive = drive
        self.last_words = ""

    def on_mount(self) -> None:
        bench = Bench(self.feed, self.look)
        bench.theme_chosen = self.theme_chosen
        bench.predict_first = self.predict
        bench.questions = self.questions
        self.push_screen(bench)

    def drives(self) -> Starts:
        """What starts a worker; it is imported where one is wanted."""
        if self.drive is None:
            from workbench.worker.client import Driver

            self.drive = Driver.start
        return self.drive

    def give_up(self, why: str, code: int) -> None:
        """Leave with one line on stderr."""
        self.last_words = plain(why)
        self.exit(return_code=code)

    def _handle_exception(self, error: Exception) -> None:
        if self.is_headless:
            super()._handle_exception(error)
            return
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" ({last[0].filename}:{last[0].lineno})" if last else ""
        self.give_up(f"tcw failed: {type(error).__name__}: {error}{where}", 4)


def run(
    path: Path,
    theme: ThemeName | None = None,
    predict: bool = False,
    questions: int = QUESTIONS,
) -> int:
    """Show the trace at `path` until the reader quits; answers the exit code.

    0; 2 where the file cannot be read or is no trace; 4 for a fault of ours. One line on stderr
    says why.
    """
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        print(f"cannot open {plain(str(path))}: {error.strerror}", file=sys.stderr)
        return 2
    return _run(Workbench(path, theme, predict, questions=questions))


def run_live(
    settings: Settings,
    trace: Path | None,
    predict: bool = False,
    breakpoints: Sequence[Breakpoint] = (),
    theme: ThemeName | None = None,
    drive: Starts | None = None,
    questions: int = QUESTIONS,
) -> int:
    """Drive a compile of `settings.file` until the reader quits; answers the exit code.

    The trace is written to `trace`, anew. 0; 2 where it cannot be written; 4 for a fault of ours.
    """
    if drive is None:
        from workbench.worker.client import Driver

        drive = Driver.start
    feed = LiveFeed(drive, settings, trace, breakpoints)
    return _run(Workbench(feed, theme, predict, drive, questions))


def _run(app: Workbench) -> int:
    app.run()
    if app.last_words:
        print(app.last_words, file=sys.stderr)
    return app.return_code or 0
