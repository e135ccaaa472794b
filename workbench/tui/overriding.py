"""The reader's overrides: as wanted, as kept, as written to a file; and which run had which."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from tcw.compiler.protocol.decision import APART, ENGINES, FUSE
from tcw.compiler.protocol.override_file import OverrideError, read_overrides
from tcw.compiler.trace.output_file import OutputKind, check, write
from tcw.compiler.trace.records import AnyRecord, Decided, Resumed, Run, Settings, Start, Waiting
from tcw.viewers.command_line import command_line
from tcw.viewers.panes.targets import ToBreakpoint, ToOverride
from tcw.viewers.plain import plain
from tcw.viewers.words import plural
from tcw.workbench.tui.breaking import Breaking
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.compile_plan import plain_name
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.feed import LiveFeed


class OverrideHistory:
    """The reader's overrides: `wanted` for the next run; `kept` for the run that a what-if is
    compared with; `written` in the file."""

    def __init__(self) -> None:
        self.settled: dict[str, str] | None = None
        """Overrides that count as kept before the first run; None for all that it was given."""
        self.wanted: dict[str, str] = {}
        self.kept: dict[str, str] = {}
        self.written: dict[str, str] = {}
        self.runs: dict[int, Settings] = {}
        """Number of a run -> its settings, with the answers given in it, and `profile` off."""
        self.ended: set[int] = set()
        self._asked: dict[str, Decided] = {}
        self._waits_at = ""
        self._run = 0

    def see(self, records: Iterable[AnyRecord]) -> None:
        """Note runs and answers as they are recorded."""
        for record in records:
            if isinstance(record, Start) and not self.runs:
                overrides = dict(record.settings.overrides)
                self.runs[0] = structs.replace(record.settings, profile=False)
                self.wanted = {**overrides, **self.wanted}
                settled = overrides if self.settled is None else self.settled
                self.kept, self.written = dict(settled), dict(settled)
            elif isinstance(record, Run):
                self._run = record.number
                self.runs.pop(0, None)
                self.runs[record.number] = structs.replace(record.settings, profile=False)
            elif isinstance(record, Decided) and record.open:
                self._asked[record.id] = record
            elif isinstance(record, Waiting):
                self._waits_at = record.decision
                if record.kind == "end":
                    self.ended.add(self._run)
            elif isinstance(record, Resumed):
                self._answered(record.choice)

    def _answered(self, choice: str) -> None:
        asked = self._asked.get(self._waits_at)
        veto = asked is not None and asked.kind == FUSE and choice == APART
        if asked is None or not choice or (choice == asked.default and not veto):
            return
        self.wanted.pop(asked.id, None)
        self.wanted[asked.id] = choice
        settings = self.runs.get(self._run)
        if settings is not None:
            overrides = {**settings.overrides, asked.id: choice}
            self.runs[self._run] = structs.replace(settings, overrides=overrides)

    @property
    def unsaved(self) -> bool:
        return self.wanted != self.written

    @property
    def settings(self) -> Settings | None:
        """The settings of the last run, with the wanted overrides."""
        last = next(reversed(self.runs.values()), None)
        return None if last is None else structs.replace(last, overrides=dict(self.wanted))

    def run_with(self, settings: Settings) -> int:
        """The last run with exactly these settings, 0 for none."""
        items = (number for number, had in reversed(self.runs.items()) if had == settings)
        return next(items, 0)

    @property
    def next_run(self) -> int:
        return max(self.runs, default=0) + 1

    def undo(self) -> str:
        """Forget the last override; returns its id, "" if there is none."""
        id = next(reversed(self.wanted), "")
        self.wanted.pop(id, None)
        return id


def because(before: dict[str, str], after: dict[str, str]) -> str:
    """The differences in words: `veto tcw/0/0/forward/fuse/a+b`."""
    parts = [_verb(id, choice) for id, choice in after.items() if before.get(id) != choice]
    parts += [f"without {id}" for id in before if id not in after]
    return ", ".join(parts)


def _verb(id: str, choice: str) -> str:
    kind = id.split("/")[-2] if id.count("/") else ""
    if kind == FUSE:
        return f"{'veto' if choice == APART else 'force'} {id}"
    return f"{choice} {id}"


_BEGINS = re.compile(rb'(?:\s*#.*\n)*\s*"(?:%s)/' % "|".join(ENGINES).encode())
OVERRIDES = OutputKind("file of overrides", lambda head: _BEGINS.match(head) is not None)


def to_toml(overrides: dict[str, str]) -> str:
    """The text of a file for `--override`: a quoted id and a quoted choice per line."""
    return "".join(f"{_quoted(id)} = {_quoted(choice)}\n" for id, choice in overrides.items())


def _quoted(words: str) -> str:
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


def replay_command(settings: Settings, file: Path) -> str:
    """The command line of the same run."""
    return command_line("explain", settings, ("--override", str(file)), overrides=False)


DEFAULT_FILE = "overrides.toml"


@dataclass(eq=False)
class Overriding(Controller):
    """`K u O W` are commands for overrides; `D` deletes overrides and breakpoints from their
    lists."""

    breaking: Breaking
    history: OverrideHistory = field(default_factory=OverrideHistory)
    _asked_to_leave: bool = False

    def __post_init__(self) -> None:
        self.show()

    def see(self, records: list[AnyRecord]) -> None:
        """Note runs and answers as they are recorded."""
        self.history.see(records)
        self.show()

    def show(self) -> None:
        """Pass them to the view."""
        self.view.overrides = self.history.wanted
        self.view.kept = self.history.kept

    @command("Delete this breakpoint or override", "D", "delete")
    def delete(self) -> None:
        """Delete the entry under the cursor."""
        match self.desk.focus_row.at:
            case ToBreakpoint(number):
                self.breaking.remove(number)
            case ToOverride(id):
                self.history.wanted.pop(id, None)
                self._forgot(id)
            case _:
                self.desk.say("d deletes breakpoints and overrides, in their lists: B and O")

    @command("Keep the overrides", "K")
    def keep(self) -> None:
        """Keep the overrides: the next what-if is compared with them."""
        if self.history.wanted == self.history.kept:
            self.desk.say("no override is new")
            return
        self.history.kept = dict(self.history.wanted)
        self.show()
        self.desk.refresh_all()
        count = plural(len(self.history.kept), "override")
        self.desk.say(f"kept {count}; W writes them to a file")

    @command("Undo the last override", "u")
    def undo(self) -> None:
        self._forgot(self.history.undo())

    def _forgot(self, id: str) -> None:
        self.history.kept.pop(id, None)
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
        last = self.history.settings
        if last is None or not self.history.wanted:
            self.desk.say("nothing is overridden: there is nothing to write")
            return
        own = isinstance(self.desk.feed, LiveFeed)  # a trace's folder may be someone else's
        default = Path(last.file).parent / DEFAULT_FILE if own else Path(DEFAULT_FILE)
        self.desk.ask_words("write overrides to", str(default), self._write)

    def _write(self, words: str, over: bool = False) -> None:
        last = self.history.settings
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
            write(file, to_toml(self.history.wanted).encode(), OVERRIDES)
        except OSError as error:
            self.desk.say(f"{plain(words)}: {plain(error.strerror or str(error))}")
            return
        self.history.written = dict(self.history.wanted)
        wrote = f"wrote {plain(file.name)}"
        if not isinstance(self.desk.feed, LiveFeed) and not plain_name(last.model):
            self.desk.say(f"{wrote}: the trace's --model is an expression, not copied")
            return
        replay = replay_command(last, file)
        self.desk.offered = replay
        self.desk.say(f"{wrote}   y copies  {plain(replay)}")

    def _ours(self, file: Path) -> bool:
        """Whether the file holds only what was written or read before."""
        try:
            return read_overrides(file) in (self.history.written, self.history.wanted)
        except OverrideError:
            return False

    # Leaving

    def may_leave(self) -> bool:
        """Whether to quit; asks once if overrides would be lost."""
        if self._asked_to_leave or not self.history.unsaved:
            return True
        self._asked_to_leave = True
        count = plural(len(self.history.wanted), "override")
        self.desk.say(f"{count} not written: W writes, q again quits without")
        return False

    def other_command(self, name: str) -> None:
        """Any other command cancels the question."""
        if name not in ("quit", "stop"):
            self._asked_to_leave = False
