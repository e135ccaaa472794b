"""`tcw open` and `tcw step`: the terminal workbench on a trace, or on a compile that it drives."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import traceback
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter

from tcw.compiler.protocol.commands import Breakpoint
from tcw.compiler.trace.reader import TraceError, open_trace
from tcw.compiler.trace.records import Settings
from tcw.viewers.kit.theme import THEMES, Theme, ThemeName
from tcw.viewers.panes.view import Derived
from tcw.viewers.plain import GLYPHS, can_encode, plain
from tcw.viewers.reader import whole
from tcw.viewers.recording import Recording
from tcw.viewers.teaching.predict import QUESTIONS
from tcw.viewers.text.processes import Several
from tcw.workbench.request import codes
from tcw.workbench.tui.bench import Bench
from tcw.workbench.tui.compile_plan import Allowed
from tcw.workbench.tui.feed import Feed, FileFeed, LiveFeed, Starts

TERMINALS = ("ansi", "cons25", "dumb", "linux", "vt100", "vt102", "vt220")
"""Values of `TERM` whose fonts have few glyphs."""


def needed(encoding: str, terminal: str) -> bool:
    """Whether a terminal shows only ASCII, judged by its encoding and `TERM`."""
    try:
        "◆".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return terminal in TERMINALS


class Ascii(LineFilter):
    """Replaces glyphs by ASCII; keeps characters that `encoding` has and whose width is
    unambiguous."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.text.isascii()
            else Segment(
                "".join(_instead(one, self._encoding) for one in segment.text), *segment[1:]
            )
            for segment in segments
        ]


@lru_cache(maxsize=4096)
def _instead(character: str, encoding: str) -> str:
    """A replacement of the same width, `?` where no character is similar."""
    if character.isascii() or character in GLYPHS:
        return GLYPHS.get(character, character)
    sure = unicodedata.east_asian_width(character) != "A"
    return character if sure and can_encode(character, encoding) else "?" * cell_len(character)


LOOK_SECONDS = 2.0
"""How often to look whether the terminal is still there."""


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
        ascii_only: bool = False,
        allowed: Allowed | None = None,
        against: Derived | None = None,
        several: Several | None = None,
        follow: Callable[[], Several | None] | None = None,
    ) -> None:
        """`allowed`: what the reader said about compiling a recorded file again. `against`: another
        recording to compare with. `several`: the processes of the folder that `source` is in.
        `follow`: looks at that folder again; None if nothing has changed."""
        colourless = theme == "mono" or (theme is None and "NO_COLOR" in os.environ)
        super().__init__(ansi_color=colourless)
        self.look: Theme = replace(
            THEMES["mono" if colourless else theme or "dark"], spells_keys=ascii_only
        )
        self.feed: Feed = FileFeed(source) if isinstance(source, Path) else source
        self.predict = predict
        """The reader guesses each fusion before it is shown."""
        self.questions = questions
        """How many guesses about one graph; 0 for every pair."""
        self.drive = drive
        self.allowed = allowed or Allowed()
        self.against = against
        self.several = several
        self.follow = follow
        self._looking = False
        """Whether a thread looks at the folder."""
        self.last_words = ""
        encoding = getattr(sys.__stderr__, "encoding", None) or "ascii"
        self._ascii = Ascii(encoding if needed(encoding, "") else "utf-8")
        self._ascii.enabled = ascii_only

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's own, and the glyphs that this terminal can show."""
        filters = super().get_line_filters()
        return [*filters, self._ascii] if self._ascii.enabled else filters

    def on_mount(self) -> None:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    loop.add_signal_handler(number, self.exit, None, codes.INTERRUPTED)
        if not self.is_headless:
            self.set_interval(LOOK_SECONDS, self._look_at_terminal)
        if self.follow is not None:
            self.set_interval(LOOK_SECONDS, self._look_at_folder)
        bench = Bench(self.feed, self.look, self.against)
        bench.view.several = self.several
        bench.predicting.predict_first = self.predict
        bench.predicting.questions = self.questions
        self.push_screen(bench)

    def _look_at_folder(self) -> None:
        """In a thread: its traces are read."""
        if not self._looking:
            self._looking = True
            self.run_worker(self._followed, thread=True, group="folder", exit_on_error=False)

    def _followed(self) -> None:
        try:
            several = self.follow() if self.follow is not None else None
        finally:
            self._looking = False
        if several is not None:
            self.call_from_thread(self._now_several, several)

    def _now_several(self, found: Several) -> None:
        """Processes have come, or gone on."""
        if len(found.processes) + len(found.unread) < 2:
            return
        first = self.several is None
        self.several = found
        self.__dict__.pop("_usual", None)
        for screen in self.screen_stack:
            if isinstance(screen, Bench):
                screen.view.several = found
                screen.refresh_all()
                if first:
                    screen.say("another process has compiled: see Go to ranks")

    def look_at(self, number: int, look: Theme) -> None:
        """Show another recording of the folder, by its number in the list of its groups and of
        the logs that were not decoded: what it does differently from the usual one."""
        if self.several is None:
            return
        groups, unread = self.several.groups, self.several.unread
        usual = self.several.usual
        file = groups[number][0].file if number < len(groups) else unread[number - len(groups)].file
        against = self._usual if file != usual.file else None
        bench = Bench(FileFeed(file), look, against)
        bench.view.several = self.several
        self.switch_screen(bench)

    @cached_property
    def _usual(self) -> Derived | None:
        """What the other processes of the folder are compared with."""
        return whole(self.several.usual.recording).view.derived if self.several else None

    def _look_at_terminal(self) -> None:
        """Leave when the terminal is gone. SIGHUP says so, unless it is ignored (`nohup`): then
        Textual would read the end of its input for ever."""
        if hung_up():
            self.exit(None, codes.INTERRUPTED)

    def drives(self) -> Starts:
        """What starts a worker; imported on first use."""
        if self.drive is None:
            from tcw.workbench.worker.client import Driver

            self.drive = Driver
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


def hung_up() -> bool:
    """Whether the other end of the terminal on standard input was closed."""
    poll = select.poll()
    poll.register(0, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def run(
    path: Path,
    predict: bool = False,
    questions: int = QUESTIONS,
    ascii_only: bool = False,
    allowed: Allowed | None = None,
    base: Path | None = None,
    several: Several | None = None,
    follow: Callable[[], Several | None] | None = None,
) -> int:
    """Show the trace at `path`, or how it differs from that at `base`, until the reader quits.
    `several`: all processes of the folder that `path` is in; `follow` looks at it again.

    Returns the exit code: 0; 2 where a file cannot be read or is not a trace; 4 for a fault of
    ours. One line on stderr says why.
    """
    against = None
    for file in filter(None, (base, path)):
        try:
            open_trace(file).close()
            against = whole(Recording.open(file)).view.derived if file is base else against
        except (OSError, TraceError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            print(f"cannot open {plain(str(file))}: {plain(str(why))}", file=sys.stderr)
            return 2
    return _run(
        Workbench(
            path,
            predict=predict,
            questions=questions,
            ascii_only=ascii_only or _ascii_terminal(),
            allowed=allowed,
            against=against,
            several=several,
            follow=follow,
        )
    )


def run_live(
    settings: Settings,
    trace: Path | None,
    predict: bool = False,
    breakpoints: Sequence[Breakpoint] = (),
    questions: int = QUESTIONS,
    ascii_only: bool = False,
) -> int:
    """Drive a compile of `settings.file` until the reader quits; returns the exit code.

    `trace` is overwritten. 0; 2 where it cannot be written; 4 for a fault of ours.
    """
    from tcw.workbench.worker.client import Driver

    feed = LiveFeed(Driver, settings, trace, breakpoints)
    ascii_only = ascii_only or _ascii_terminal()
    return _run(Workbench(feed, None, predict, Driver, questions, ascii_only))


def _ascii_terminal() -> bool:
    """Textual writes to the standard error's terminal."""
    return needed(sys.__stderr__.encoding if sys.__stderr__ else "", os.environ.get("TERM", ""))


def _run(app: Workbench) -> int:
    app.run()
    if app.last_words:
        print(app.last_words, file=sys.stderr)
    return app.return_code or 0
