"""Places in words: short file names, code and paths cut to a width in cells."""

from __future__ import annotations

import os
from pathlib import PurePath

from rich.cells import cell_len, set_cell_size

from compiler.trace.records import Settings

_LIBRARIES = ("site-packages", "dist-packages")


class FileNames:
    """Shortens file names: relative to the user's file's folder, or to the library's."""

    def __init__(self, root: str = "") -> None:
        self.root = root
        self._known: dict[str, str] = {}

    @classmethod
    def for_settings(cls, settings: Settings | None) -> FileNames:
        """Names relative to the recorded file."""
        return cls(os.path.dirname(settings.file) if settings else "")

    def short(self, file: str) -> str:
        """`/home/me/models/block.py` -> `block.py`; `…/site-packages/torch/nn/x.py` ->
        `torch/nn/x.py`; any other keeps its last two parts."""
        if file not in self._known:
            self._known[file] = _short(file, self.root)
        return self._known[file]

    def place(self, file: str, line: int) -> str:
        """`block.py:24`."""
        return f"{self.short(file)}:{line}"


def _short(file: str, root: str) -> str:
    parts = PurePath(file).parts
    for library in _LIBRARIES:
        if library in parts:
            tail = parts[len(parts) - parts[::-1].index(library) :]
            if tail:
                return "/".join(tail)
    path = PurePath(file)
    if root and path.is_relative_to(root):
        return str(path.relative_to(root))
    for index, part in enumerate(parts[:-1]):
        if part.startswith("python3.") and parts[index - 1].startswith("lib"):
            return "/".join(parts[index + 1 :])
    return file if len(parts) <= 3 else "…/" + "/".join(parts[-2:])


PER_CELL = 8
"""Characters of a long text considered per cell: more would be marks on one letter."""


def cut(text: str, width: int) -> str:
    """At most `width` cells of `text`; `›` marks a cut at the right."""
    if width <= 0:
        return ""
    shown = text[: PER_CELL * width]
    if len(shown) == len(text) and cell_len(text) <= width:
        return text
    return set_cell_size(shown, width - 1).rstrip() + "›"


def keep_end(text: str, width: int) -> str:
    """At most `width` cells of the end of `text`: `…ln1.weight`."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    room = width - 1
    start = len(text)
    while start and (size := cell_len(text[start - 1])) <= room:
        room -= size
        start -= 1
    return "…" + text[start:]
