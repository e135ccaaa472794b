"""The files that a run writes: checked before it starts, written when it is over.

One rule for `--trace`, `--chrome` and `--patch`: the file is new, or one of ours of the same kind.
A file that the run reads is never overwritten, and no two outputs share a file.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from tcw.compiler.protocol.edits import EditError, by_file
from tcw.compiler.trace.output_file import OutputKind, check, words, write
from tcw.compiler.trace.records import End, Settings
from tcw.workbench.request import codes
from tcw.workbench.request.messages import say

_TAIL_BYTES = 1 << 16
"""The end record of a trace is within its last bytes; notes may follow it."""


class Outputs:
    """The outputs of one run. One that cannot be written is reported and sets the exit code."""

    def __init__(self, *settings: Settings) -> None:
        self._taken = {
            Path(file): "a file that the run reads"
            for setting in settings
            for file in _read(setting)
        }
        self._failed = False

    def expect(self, option: str, path: Path | None, kind: OutputKind | None = None) -> None:
        """Raise `click.UsageError` if the run could not write `path`. An existing file has to be of
        this kind; with None, the file must not exist."""
        if path is None:
            return
        for taken, what in self._taken.items():
            if _same(path, taken):
                raise click.UsageError(f"{option} {path}: it is {what}")
        try:
            check(path, kind)
        except OSError as error:
            raise click.UsageError(f"{option} {path}: {words(error)}") from error
        self._taken[path] = f"what {option} writes"

    def write(self, option: str, path: Path, text: str, kind: OutputKind | None = None) -> bool:
        """Write an expected file. If that fails, report it on stderr and return False."""
        try:
            write(path, text.encode(), kind)
        except OSError as error:
            self.fail(f"{option} {path} was not written: {words(error)}")
            return False
        return True

    def recorded(self, trace: Path | None, end: End) -> None:
        """Check that a trace has its end record: the disk may have been full."""
        if trace is None:
            return
        try:
            with trace.open("rb") as stream:
                stream.seek(-min(_TAIL_BYTES, stream.seek(0, os.SEEK_END)), os.SEEK_END)
                tail = b"\n" + stream.read()
        except OSError:  # the user removed it
            return
        if b'\n{"record":"end"' not in tail:
            self.fail(f"--trace {trace} is cut off: {end.reason or 'its end could not be written'}")

    def fail(self, message: str) -> None:
        """Report that a requested output cannot be made."""
        self._failed = True
        say(message)

    def code(self, code: int) -> int:
        """The exit code of a run that would otherwise exit with `code`."""
        return codes.unwritten(code) if self._failed else code


def _read(settings: Settings) -> list[str]:
    try:
        return [settings.file, *by_file(settings.edits, settings.file)]
    except EditError:
        return [settings.file]


def _same(one: Path, other: Path) -> bool:
    """Whether two paths name one file, which need not exist yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)
