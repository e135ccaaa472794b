"""Where in the user's own files something happened. No torch."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from types import TracebackType

from tcw.compiler.graphs.lines import ours, outside_torch, users_own
from tcw.compiler.trace.records import Location

_TORCH = re.compile(r"[/\\](?:site|dist)-packages[/\\](?:torch|triton)[/\\]")
"""The front end never imports torch, so it cannot ask torch for its folder."""


def not_ours(file: str) -> bool:
    """Whether `file` is neither torch's, the standard library's nor tcw's."""
    return outside_torch(file) and not ours(file) and not _TORCH.search(file)


def deepest(frames: Sequence[Location], root: str) -> Location | None:
    """The deepest of these frames (outermost first) in the user's own files, else in a library."""
    for wanted in (lambda file: users_own(file, root), not_ours):
        for frame in reversed(frames):
            if wanted(frame.file):
                return frame
    return None


def traceback_frames(trace: TracebackType | None) -> list[Location]:
    """The frames of a traceback, outermost first, with column ranges."""
    frames = []
    while trace is not None:
        code, instruction = trace.tb_frame.f_code, trace.tb_lasti // 2
        line, end_line, column, end_column = next(
            itertools.islice(code.co_positions(), instruction, None), (None,) * 4
        )
        frames.append(
            Location(
                file=code.co_filename,
                line=line or trace.tb_lineno or code.co_firstlineno,
                end_line=end_line,
                column=column,
                end_column=end_column,
                function=code.co_name,
            )
        )
        trace = trace.tb_next
    return frames


def source_line(location: Location | None) -> str:
    """The source line of a location without its end; "" if it cannot be read."""
    if location is None:
        return ""
    try:
        with open(location.file, encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, 1):
                if number == location.line:
                    return line.rstrip("\r\n")[:2000]
    except (OSError, ValueError):
        pass
    return ""


_DUMPED = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


def dumped_frames(dump: str) -> list[Location]:
    """The current thread's frames in faulthandler's text, outermost first. A dump holds several
    threads; `Current thread` is the one that crashed or was asked."""
    blocks = re.split(r"^(?=Current thread |Thread 0x)", dump, flags=re.MULTILINE)
    chosen = [block for block in blocks if block.startswith("Current thread")] or blocks
    frames = []
    for line in chosen[-1].splitlines():
        match = _DUMPED.match(line)
        if match:
            file, function = (_unescaped(match[name]) for name in ("file", "function"))
            frames.append(Location(file=file, line=int(match["line"]), function=function))
    return frames[::-1]


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), text)
