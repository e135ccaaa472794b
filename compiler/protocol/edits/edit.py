"""How an edit is written: `drop:15`, or `drop:layers/norm.py:15` for another file of the user's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass


class EditError(Exception):
    """An edit that cannot be applied; the message says why, in a phrase."""


@dataclass(frozen=True)
class Edit:
    """One edit of one statement."""

    kind: str
    """One of `tcw.compiler.protocol.edits.KINDS`."""
    line: int
    """A line of the statement, from 1."""
    file: str = ""
    """Relative to the folder of the main file; "" for the main file."""

    def __str__(self) -> str:
        return ":".join(filter(None, (self.kind, self.file, str(self.line))))


def read_edit(text: str) -> Edit:
    """Raises `EditError` if it is not an edit; does not check the kind."""
    kind, _, rest = text.partition(":")
    file, _, line = rest.rpartition(":")
    if not kind or not line.isascii() or not line.isdigit() or int(line) < 1:
        raise EditError(f"{text!r}: expected KIND:LINE or KIND:FILE:LINE, such as drop:15")
    return Edit(kind, int(line), os.path.normpath(file) if file else "")


def by_file(texts: Iterable[str], main: str) -> dict[str, list[Edit]]:
    """Absolute path of each edited file -> its edits. `main` is the file that runs."""
    found: dict[str, list[Edit]] = {}
    main = os.path.abspath(main)
    for text in texts:
        edit = read_edit(text)
        file = os.path.join(os.path.dirname(main), edit.file) if edit.file else main
        found.setdefault(os.path.abspath(file), []).append(edit)
    return found


def relative(file: str, main: str) -> str | None:
    """`Edit.file` for an absolute path; None for a file outside the folder of `main`."""
    main, file = os.path.abspath(main), os.path.abspath(file)
    if file == main:
        return ""
    folder = os.path.join(os.path.dirname(main), "")
    inside = file.removeprefix(folder)
    installed = {"site-packages", "dist-packages"} & set(inside.split(os.sep))
    return None if inside == file or installed else inside
