"""What edits change, as a diff of the user's files; and a patch of those that were kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from compiler.edits import EditError, by_file, diff, edited
from compiler.trace.records import Settings, Trial
from viewers.summary.profile.tried import chosen


@dataclass(frozen=True)
class SourceDiff:
    """What one run has otherwise than another in the source."""

    text: str
    """A unified diff; paths are those from the current folder."""
    reason: str = ""
    """Why the edits cannot be made."""


def source_diff(before: Settings, after: Settings) -> SourceDiff:
    """Between the edits of two settings of one file."""
    if before.edits == after.edits:
        return SourceDiff("")
    found = []
    try:
        old, new = (by_file(one.edits, one.file) for one in (before, after))
        for file in {**old, **new}:
            with Path(file).open(encoding="utf-8", newline="") as stream:
                text = stream.read()
            texts = (edited(text, edits.get(file, ())) for edits in (old, new))
            found.append(diff(_name(file), *texts))
    except EditError as error:
        return SourceDiff("", str(error))
    except (OSError, UnicodeDecodeError) as error:
        return SourceDiff("", f"the source cannot be read: {error}")
    return SourceDiff("".join(found))


def _name(file: str) -> str:
    near = os.path.relpath(file)
    return (file.lstrip(os.sep) if near.startswith(os.pardir) else near).replace(os.sep, "/")


def write_patch(file: Path, trials: Sequence[Trial]) -> str:
    """Write what was kept of the source as a patch; what was done, in words."""
    best = chosen(trials)
    if best is None or not best.diff:
        what = "nothing was kept" if best is None else "what was kept changes no source"
        return f"{file} is not written: {what}"
    try:
        with file.open("w", encoding="utf-8", newline="") as stream:
            stream.write(best.diff)
    except OSError as error:
        raise click.UsageError(f"--patch {file}: {error.strerror}") from error
    first = best.diff.partition("\n")[0].removeprefix("--- a/")
    where = "" if Path(first).exists() else " -d /"
    return f"{file} has the edits: patch -p1{where} < {file}"
