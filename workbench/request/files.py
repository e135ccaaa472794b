"""Checks of the input files that the user names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import click

from tcw.compiler.trace.plain_file import special
from tcw.compiler.trace.reader import TraceError
from tcw.compiler.trace.torch_logs.decoder import is_log as begins_like_log
from tcw.compiler.trace.torch_logs.log_files import head_of, looks_like_log, process_of


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Raise `click.UsageError` if the file turns out to be no trace, or cannot be read."""
    try:
        yield
    except TraceError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from error


def existing_file(file: Path) -> None:
    """Raise `click.UsageError` if `file` is not a file, suggesting the name that was meant."""
    file, _ = process_of(file)
    if file.exists():
        if what := special(file.stat().st_mode):
            raise click.UsageError(f"{file} is {what}, not a file")
        return
    folder = file.parent
    names = [path.name for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    close = get_close_matches(file.name, names, n=1, cutoff=0.75)
    if not folder.is_dir():
        raise click.UsageError(f"{file} does not exist: no folder {folder}")
    hint = f". Did you mean {folder / close[0]}?" if close else ""
    raise click.UsageError(f"{file} does not exist{hint}")


TRACE = ".tcw"
"""The suffix of a trace's file name. Such a file is never run."""


def is_trace(file: Path) -> bool:
    """Whether a verb that takes a model or a trace reads `file` as a trace.

    Only the name decides, never the contents: a file sent as a trace must not turn into a
    program.
    """
    return file.suffix.lower() != ".py" or file.resolve().suffix.lower() == TRACE


def named_trace(file: Path) -> bool:
    """Whether the name of `file`, or of what it links to, is that of a trace: it is never run."""
    return TRACE in (file.suffix.lower(), file.resolve().suffix.lower())


def is_log(file: Path) -> bool:
    """Whether `file` is read as a torch log (`TORCH_TRACE`): such a file is never run."""
    file, _ = process_of(file)
    if file.suffix.lower() == ".py" or not file.is_file():
        return False
    return looks_like_log(file) or begins_like_log(head_of(file))


def python_file(file: Path) -> None:
    """Raise `click.UsageError` if `file` does not exist or is a trace: traces are never run."""
    existing_file(file)
    named = named_trace(file)
    begins = _begins_like_a_trace(file)
    if named and not begins:
        raise click.UsageError(
            f"{file} is not a trace, and a file named {TRACE} is never run: "
            "give a Python file another name"
        )
    if named or begins:
        raise click.UsageError(
            f"{file} is a trace, which is never run. Did you mean 'tcw open {file}'?"
        )


def _begins_like_a_trace(file: Path) -> bool:
    if not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            return stream.read(9) == b'{"record"'
    except OSError:
        return False  # the reader reports why
