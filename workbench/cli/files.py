"""Files that the user names: there, readable, and not by mistake another's."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import click

from compiler.trace.reader import special


def existing_file(file: Path) -> None:
    """`click.UsageError` where `file` is no file, with the name that was probably meant."""
    if file.exists():
        if what := special(file.stat().st_mode):
            raise click.UsageError(f"{file} is {what}, not a file")
        return
    folder = file.parent
    names = [one.name for one in folder.iterdir() if one.is_file()] if folder.is_dir() else []
    close = get_close_matches(file.name, names, n=1, cutoff=0.75)
    if not folder.is_dir():
        raise click.UsageError(f"{file} is not there: there is no folder {folder}")
    hint = f". Did you mean {folder / close[0]}?" if close else ""
    raise click.UsageError(f"{file} is not there{hint}")


def new_trace(file: Path) -> None:
    """`click.UsageError` where a trace must not be written to `file`: only a trace is replaced."""
    if file.is_dir():
        raise click.UsageError(f"--trace {file} is a folder")
    if not file.parent.is_dir():
        raise click.UsageError(f"--trace {file}: there is no folder {file.parent}")
    try:
        with file.open("rb") as stream:
            head = stream.read(64)
    except FileNotFoundError:
        return
    except OSError as error:
        raise click.UsageError(f"--trace {file}: {error.strerror}") from error
    if file.is_file() and head and not head.startswith(b'{"record"'):
        raise click.UsageError(f"--trace {file} is there and is no trace: it is left as it is")
