"""Places in words: short file names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from rich.cells import cell_len

from tcw.compiler.trace.records import Settings
from tcw.viewers.collected import grouped
from tcw.viewers.kit.cells import keep_end
from tcw.viewers.plain import plain
from tcw.viewers.words import numbers_text

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

    def lines(self, places: Iterable[tuple[str, int]]) -> str:
        """`block.py:17–20, 22`; several files one after the other."""
        files = grouped(places).items()
        return "; ".join(f"{self.short(file)}:{numbers_text(of)}" for file, of in files)

    def few(self, places: Sequence[tuple[str, int]], main: str, room: int) -> str:
        """`17–20`, in at most `room` cells: with its file's last name if that is not `main`, and `
        …` if other files have lines in it, too."""
        file = places[0][0]
        lines = numbers_text(line for one, line in places if one == file)
        more = " …" if any(one != file for one, _ in places) else ""
        name = "" if file == main else plain(self.short(file)).rpartition("/")[2] + ":"
        left = room - cell_len(name) - len(more)
        return keep_end(f"{name}{_ends(lines, left)}{more}", room)


def _ends(lines: str, room: int) -> str:
    """`17–20, 24, 31` -> `17…31`: no number is cut."""
    if len(lines) <= room:
        return lines
    first, last = lines.split(", ")[0].split("–")[0], lines.split(", ")[-1].split("–")[-1]
    return f"{first}…{last}" if first != last else first


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
