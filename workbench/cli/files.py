"""Files that the user names to be read."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import click


def existing_file(file: Path) -> None:
    """`click.UsageError` where `file` is no file, with the name that was probably meant."""
    if file.is_dir():
        raise click.UsageError(f"{file} is a folder, not a file")
    if file.exists():
        return
    folder = file.parent
    names = [one.name for one in folder.iterdir() if one.is_file()] if folder.is_dir() else []
    close = get_close_matches(file.name, names, n=1, cutoff=0.75)
    if not folder.is_dir():
        raise click.UsageError(f"{file} is not there: there is no folder {folder}")
    hint = f". Did you mean {folder / close[0]}?" if close else ""
    raise click.UsageError(f"{file} is not there{hint}")
