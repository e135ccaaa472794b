"""The reader's overrides: as wanted, as kept, as written; and which run had which. No widget."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from tcw.compiler.control.decisions import APART, ENGINES, FUSE
from tcw.compiler.output_file import OutputKind
from tcw.compiler.trace.records import AnyRecord, Decided, Resumed, Run, Settings, Start, Waiting
from tcw.viewers.command_line import command_line


class Overruled:
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
        found = (number for number, had in reversed(self.runs.items()) if had == settings)
        return next(found, 0)

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
