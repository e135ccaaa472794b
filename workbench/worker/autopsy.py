"""Why a worker died without an end record, found from its status, last output and stack dump."""

from __future__ import annotations

import os
import signal
from typing import Literal

from msgspec.structs import replace

from tcw.compiler.trace.records import (
    CallStart,
    End,
    Failure,
    Location,
    Output,
    Progress,
    Record,
    Settings,
    Start,
)
from tcw.workbench.worker.blame import Blame, deepest, dumped_frames, said_by_machine, source_line
from tcw.workbench.worker.exits import RECORDS_CLOSED

Stopped = Literal["timeout", "interrupted"]
"""Why the front end ends a worker."""


class Autopsy:
    """Follows the records, and makes the last ones if the worker could not."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._root = os.path.dirname(os.path.abspath(settings.file))
        self._doing = "starting"
        self._started = False
        self._failed: Failure | None = None
        self._last_words = ""

    def see(self, record: Record) -> None:
        """Note where the worker is, from a record; keep the end of its output."""
        if isinstance(record, Progress):
            self._doing = record.activity
        elif isinstance(record, CallStart):
            self._doing = f"call {record.call}"
        elif isinstance(record, Failure):
            self._failed = record
        elif isinstance(record, Start):
            self._started = True
        elif isinstance(record, Output) and record.stream == "stderr":
            self._last_words = (self._last_words + record.text)[-_LAST_WORDS:]

    def found(
        self, status: str, dump: str, stopped: Stopped | None, seconds: float
    ) -> tuple[list[Failure], End]:
        """A failure with its place, unless one was recorded; and the end record.

        `status`: the worker's wait status as the guardian wrote it, "" if the guardian is dead too.
        `dump`: what faulthandler wrote. `stopped`: why the front end ended it, if it did.
        """
        place = deepest(dumped_frames(dump), self._root)
        code, number = _exit(status)
        end = End(status="crashed", seconds=seconds, exit_code=code, reason=self._doing)
        if stopped == "timeout":
            limit = self._settings.timeout
            failure = self._failure("timeout", f"not done after {limit:g} s", place)
            return [failure], replace(end, status="timeout", exit_code=None)
        if stopped == "interrupted":
            return [], replace(end, status="interrupted", exit_code=None)
        if number is not None:
            name = _signal_name(number)
            blame = _LIMITS.get(name) or said_by_machine(self._last_words)
            failure = self._failure(name, _DEATHS.get(name, f"killed by {name}"), place, blame)
            end = replace(end, signal=number, reason=f"{name} while {self._doing}")
        else:
            failure = self._failure("exit", self._words_of(code), place, self._blame(code))
            end = replace(end, status="crashed" if code is None else "exited")
        return [failure] if self._failed is None else [], end

    def _failure(
        self, kind: str, message: str, place: Location | None, blame: Blame | None = None
    ) -> Failure:
        blame = blame or Blame("user")
        return Failure(
            doing=self._doing,
            type=kind,
            message=message,
            location=place,
            source_line=source_line(place),
            culprit=blame.culprit,
            evidence=blame.evidence,
            hint=blame.hint,
        )

    def _words_of(self, code: int | None) -> str:
        if code is None:
            return "the process is gone; how it ended is unknown"
        if code == RECORDS_CLOSED:
            return "the program closed the recording's files; what it did then is unknown"
        said = self._last_words.strip().splitlines()
        if said and (code == _LINKER or not self._started):
            return f"the worker ended with status {code}: {said[-1]}"
        return f"the process ended with status {code}, without a message"

    def _blame(self, code: int | None) -> Blame:
        if code == RECORDS_CLOSED:
            hint = "os.closerange(3, …), as in daemons, closes files that the program did not open"
            return Blame("user", hint=hint)
        if self._started and code != _LINKER:
            return Blame("user")
        return said_by_machine(self._last_words) or Blame("user" if self._started else "tcw")


_LAST_WORDS = 4000
"""Characters of stderr that are kept."""

_LINKER = 127
"""Status with which glibc's dynamic linker ends a process, after a line such as `cannot allocate
memory for thread-local data: ABORT` (elf/dl-tls.c)."""

_LIMITS = {
    "SIGXFSZ": Blame("machine", hint="raise the limit on the size of files (ulimit -f)"),
    "SIGXCPU": Blame("machine", hint="raise the limit on processor time (ulimit -t)"),
}

_DEATHS = {
    "SIGXFSZ": "it wrote a file larger than the limit",
    "SIGXCPU": "it took more processor time than the limit",
    "SIGSEGV": "segmentation fault: native code read or wrote memory that is not its own",
    "SIGABRT": "aborted by native code",
    "SIGBUS": "bus error in native code",
    "SIGFPE": "arithmetic error in native code",
    "SIGILL": "native code ran an instruction that this CPU lacks",
    "SIGKILL": "killed from outside; the kernel does this when memory runs out",
}


def _exit(status: str) -> tuple[int | None, int | None]:
    """(exit code, signal) of a wait status."""
    try:
        number = int(status)
    except ValueError:
        return None, None
    if number < 0:
        return None, None
    if os.WIFSIGNALED(number):
        return None, os.WTERMSIG(number)
    return os.WEXITSTATUS(number), None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
