"""The user's edits as a diff of the source files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tcw.compiler.edits import EditError, by_file, diff, edited
from tcw.compiler.trace.records import Settings


@dataclass(frozen=True)
class SourceDiff:
    """How the source of one run differs from that of another."""

    text: str
    """A unified diff. Paths are relative to the current folder; if a file is outside it, to the
    root folder."""
    reason: str = ""
    """Why the edits cannot be applied."""


def source_diff(before: Settings, after: Settings) -> SourceDiff:
    """The diff between the edits of two settings for one file."""
    if before.edits == after.edits:
        return SourceDiff("")
    try:
        texts = texts_of(before, after)
        names = names_of(texts)
        return SourceDiff("".join(diff(names[file], *pair) for file, pair in texts.items()))
    except EditError as error:
        return SourceDiff("", str(error))
    except (OSError, UnicodeDecodeError) as error:
        return SourceDiff("", f"the source cannot be read: {error}")


def texts_of(before: Settings, after: Settings) -> dict[str, tuple[str, str]]:
    """Path of each file that either edits -> its text with each side's edits.

    Raises `EditError`, OSError and UnicodeDecodeError.
    """
    found = {}
    old, new = (by_file(one.edits, one.file) for one in (before, after))
    for file in {**old, **new}:
        with Path(file).open(encoding="utf-8", newline="") as stream:
            text = stream.read()
        found[file] = edited(text, old.get(file, ())), edited(text, new.get(file, ()))
    return found


def base_of(files: Iterable[str]) -> str:
    """The folder in which to apply a patch of these files: the current one, or the root folder."""
    here = os.getcwd()
    return here if all(os.path.commonpath((here, file)) == here for file in files) else os.sep


def names_of(files: Collection[str]) -> dict[str, str]:
    """The name of each file in a patch."""
    base = base_of(files)
    return {file: os.path.relpath(file, base).replace(os.sep, "/") for file in files}
