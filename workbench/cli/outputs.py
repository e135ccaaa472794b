"""The files that a run writes: looked at before it starts, and written when it is over.

One rule for `--trace`, `--chrome` and `--patch`: a new file, or one of ours of the same kind. What
the run reads is never written, and no two outputs share a file.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from compiler.edits import EditError, by_file
from compiler.output_file import Kind, check, words, write
from compiler.trace.records import End, Settings
from workbench.cli import codes
from workbench.cli.output import say

_TAIL_BYTES = 1 << 16
"""The end of a trace is within its last bytes; notes may follow it."""


class Outputs:
    """The outputs of one run. What cannot be written at the end is said on stderr, and counts."""

    def __init__(self, settings: Settings) -> None:
        self._taken = {Path(file): "a file that the run reads" for file in _read(settings)}
        self._failed = False

    def expect(self, option: str, path: Path | None, kind: Kind | None = None) -> None:
        """Raise `click.UsageError` where the run could not write `path`. `kind`: a file of this
        kind may be there; None: the name has to be new."""
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

    def write(self, option: str, path: Path, text: str, kind: Kind | None = None) -> bool:
        """Write a file that was expected; False, and a line on stderr, where that fails now."""
        try:
            write(path, text.encode(), kind)
        except OSError as error:
            self.fail(f"{option} {path} is not written: {words(error)}")
            return False
        return True

    def recorded(self, trace: Path | None, end: End) -> None:
        """Look whether a trace has got its end: the disk may have been full."""
        if trace is None:
            return
        try:
            with trace.open("rb") as stream:
                stream.seek(-min(_TAIL_BYTES, stream.seek(0, os.SEEK_END)), os.SEEK_END)
                tail = b"\n" + stream.read()
        except OSError:  # the user took it away
            return
        if b'\n{"record":"end"' not in tail:
            self.fail(f"--trace {trace} is cut off: {end.reason or 'its end could not be written'}")

    def fail(self, message: str) -> None:
        """An output that was asked for cannot be made."""
        self._failed = True
        say(message)

    def code(self, code: int) -> int:
        """The exit code of a run that would end with `code`."""
        return codes.unwritten(code) if self._failed else code


def _read(settings: Settings) -> list[str]:
    try:
        return [settings.file, *by_file(settings.edits, settings.file)]
    except EditError:
        return [settings.file]


def _same(one: Path, other: Path) -> bool:
    """Whether two paths name one file, also where it is not there yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)
