"""The reader's overrides: listed, kept, undone, written to a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from tcw.compiler.control.decisions import OverrideError, read_overrides
from tcw.compiler.output_file import check, write
from tcw.compiler.trace.records import AnyRecord
from tcw.viewers.panes.targets import ToBreakpoint, ToOverride
from tcw.viewers.plain import plain
from tcw.viewers.words import plural
from tcw.workbench.tui.again import plain_name
from tcw.workbench.tui.breaking import Breaking
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.live_feed import LiveFeed
from tcw.workbench.tui.overruled import OVERRIDES, Overruled, replay_command, to_toml

DEFAULT_FILE = "overrides.toml"


@dataclass(eq=False)
class Overrides(Controller):
    """`K u O W` are commands for overrides; `D` deletes overrides and breakpoints from their
    lists."""

    breaking: Breaking
    overruled: Overruled = field(default_factory=Overruled)
    _asked_to_leave: bool = False

    def __post_init__(self) -> None:
        self.show()

    def see(self, records: list[AnyRecord]) -> None:
        """Note runs and answers as they are recorded."""
        self.overruled.see(records)
        self.show()

    def show(self) -> None:
        """Pass them to the view."""
        self.view.overrides = self.overruled.wanted
        self.view.kept = self.overruled.kept

    @command("Delete this breakpoint or override", "D", "delete")
    def delete(self) -> None:
        """Delete the entry under the cursor."""
        match self.desk.focus_row.at:
            case ToBreakpoint(number):
                self.breaking.remove(number)
            case ToOverride(id):
                self.overruled.wanted.pop(id, None)
                self._forgot(id)
            case _:
                self.desk.say("d deletes breakpoints and overrides, in their lists: B and O")

    @command("Keep the overrides", "K")
    def keep(self) -> None:
        """Keep the overrides: the next what-if is compared with them."""
        if self.overruled.wanted == self.overruled.kept:
            self.desk.say("no override is new")
            return
        self.overruled.kept = dict(self.overruled.wanted)
        self.show()
        self.desk.refresh_all()
        count = plural(len(self.overruled.kept), "override")
        self.desk.say(f"kept {count}; W writes them to a file")

    @command("Undo the last override", "u")
    def undo(self) -> None:
        self._forgot(self.overruled.undo())

    def _forgot(self, id: str) -> None:
        self.overruled.kept.pop(id, None)
        self.show()
        self.desk.refresh_all()
        words = f"forgot {plain(id)}: the next run is without it" if id else "nothing is overridden"
        self.desk.say(words)

    @command("List overrides", "O")
    async def overrides(self) -> None:
        await self.desk.show("overrides")

    # The file

    @command("Write the overrides to a file", "W")
    def write(self) -> None:
        last = self.overruled.settings
        if last is None or not self.overruled.wanted:
            self.desk.say("nothing is overridden: there is nothing to write")
            return
        own = isinstance(self.desk.feed, LiveFeed)  # a trace's folder may be someone else's
        default = Path(last.file).parent / DEFAULT_FILE if own else Path(DEFAULT_FILE)
        self.desk.ask_words("write overrides to", str(default), self._write)

    def _write(self, words: str, over: bool = False) -> None:
        last = self.overruled.settings
        if not words or last is None:
            return
        file = Path(os.path.expanduser(words))
        try:
            check(file, OVERRIDES)
            if not over and file.exists() and not self._ours(file):
                self.desk.ask_words(
                    f"{plain(file.name)} exists: type y to overwrite it",
                    "",
                    lambda said: (
                        self._write(words, True) if said == "y" else self.desk.say("not written")
                    ),
                )
                return
            write(file, to_toml(self.overruled.wanted).encode(), OVERRIDES)
        except OSError as error:
            self.desk.say(f"{plain(words)}: {plain(error.strerror or str(error))}")
            return
        self.overruled.written = dict(self.overruled.wanted)
        wrote = f"wrote {plain(file.name)}"
        if not isinstance(self.desk.feed, LiveFeed) and not plain_name(last.model):
            self.desk.say(f"{wrote}: the trace's --model is an expression, not copied")
            return
        replay = replay_command(last, file)
        self.desk.offer(replay)
        self.desk.say(f"{wrote}   y copies  {plain(replay)}")

    def _ours(self, file: Path) -> bool:
        """Whether the file holds only what was written or read before."""
        try:
            return read_overrides(file) in (self.overruled.written, self.overruled.wanted)
        except OverrideError:
            return False

    # Leaving

    def may_leave(self) -> bool:
        """Whether to quit; asks once if overrides would be lost."""
        if self._asked_to_leave or not self.overruled.unsaved:
            return True
        self._asked_to_leave = True
        count = plural(len(self.overruled.wanted), "override")
        self.desk.say(f"{count} not written: W writes, q again quits without")
        return False

    def other_command(self, name: str) -> None:
        """Any other command cancels the question."""
        if name not in ("quit", "stop"):
            self._asked_to_leave = False
