"""Places in the source, from what a log tells: interned file names, stacks, short paths."""

from __future__ import annotations

import re
from typing import Any

from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import Location
from tcw.compiler.trace.refs import digits

_MOST_FILES = 100_000
_FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d{1,9})(?:, in (?P<function>.+))?$')
_TORCH = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/(?:torch|triton)/|/torch/_(?:dynamo|inductor)/"
)
_STANDARD = re.compile(r"/lib(?:64)?/python\d\.\d+/(?!site-packages/|dist-packages/)")


def outside_torch(file: str) -> bool:
    """Whether a file is neither torch's nor the standard library's, by its path: the log may come
    from another machine."""
    if file.startswith("<") and file != "<stdin>":
        return False
    return not (_TORCH.search(file) or _STANDARD.search(file))


class LogSources:
    """The file names of a log: interned ones by number, short ones by what they end with."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._short: dict[str, str] = {}
        """Short path -> the one whole path that ends with it; "" if there are several."""
        self._known: set[str] = set()
        self.lines: dict[str, dict[int, str]] = {}
        """The user's source lines that the log quotes, by file."""

    def intern(self, data: Any) -> None:
        """`["/home/me/train.py", 7]`: what `7` stands for from here on."""
        if isinstance(data, list) and len(data) == 2 and len(self._names) < _MOST_FILES:
            name, number = data
            if isinstance(name, str) and isinstance(number, int):
                self._names[number] = name
                self.add(name)

    def add(self, file: str) -> None:
        """Learn a whole path."""
        if file in self._known or len(self._known) >= _MOST_FILES:
            return
        self._known.add(file)
        parts = file.split("/")
        for count in range(1, min(len(parts), 8)):
            short = "/".join(parts[-count:])
            self._short[short] = "" if self._short.get(short, file) != file else file

    def whole(self, short: str) -> str:
        """The whole path of a short one, as torch writes it in guards; "" for a path of torch's
        own, and for one that the log has nowhere in full."""
        found = self._short.get(short, short if short.startswith("/") else "")
        return found if found and outside_torch(found) else ""

    def quote(self, file: str, line: int, code: str) -> None:
        """Keep a source line that the log quotes."""
        if code and line > 0:
            self.lines.setdefault(file, {}).setdefault(line, code)

    def stack(self, frames: Any) -> tuple[Location, ...]:
        """A stack of the metadata, outermost first: `{"line", "name", "filename", "loc"}` each."""
        found = []
        for frame in frames if isinstance(frames, list) else ():
            if not isinstance(frame, dict):
                continue
            file, line, name = (frame.get(key) for key in ("filename", "line", "name"))
            named = self._names.get(file, "") if isinstance(file, int) else file
            if isinstance(named, str) and named and isinstance(line, int) and 0 <= line < 2**31:
                function = user_name(name) if isinstance(name, str) else ""
                found.append(Location(file=named, line=line, function=function))
                if isinstance(code := frame.get("loc"), str):
                    self.quote(named, line, code)
        return tuple(found)

    def traceback(self, text: str) -> tuple[Location, ...]:
        """The frames of a formatted stack, outermost first."""
        found = []
        rows = text.split("\n")
        for at, row in enumerate(rows):
            match = _FRAME.match(row)
            if match is None:
                continue
            line = digits(match["line"]) or 0
            found.append(
                Location(file=match["file"], line=line, function=user_name(match["function"] or ""))
            )
            self.add(match["file"])
            if at + 1 < len(rows) and not _FRAME.match(rows[at + 1]):
                self.quote(match["file"], line, rows[at + 1].strip())
        return tuple(found)

    def code(self, location: Location) -> str:
        """The source line at a place, as far as the log quotes it; "" if it does not."""
        return self.lines.get(location.file, {}).get(location.line, "")


def user_frames(stack: tuple[Location, ...]) -> tuple[Location, ...]:
    """The frames outside torch and the standard library."""
    return tuple(location for location in stack if outside_torch(location.file))
