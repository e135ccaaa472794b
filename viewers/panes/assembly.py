"""What a Triton kernel was compiled to, each line with the line of the kernel that it comes from.

All five forms carry that line: MLIR in a table of locations, LLVM IR in its debug metadata, PTX in
`.loc`, SASS in nvdisasm's comments. For code inlined from Triton's library it is the line of the
call in the kernel; nvdisasm omits it, so such SASS has no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tcw.viewers.panes.view import KernelLanguage


@dataclass(frozen=True)
class CodeLine:
    """One line of compiled code."""

    number: int
    """Counts from 1 in the whole text."""
    text: str
    """As shown, without what only gives its origin."""
    origin: int
    """Line of the Triton kernel's text; 0 if none is known."""
    only_places: bool = False
    """Whether it only gives the origin of code: tidied code omits it."""


@lru_cache(maxsize=32)
def code_lines(body: str, language: KernelLanguage, kernel: str) -> tuple[CodeLine, ...]:
    """`kernel`: name of the generated function; its file is called so."""
    read = {"ptx": _ptx, "sass": _sass, "llir": _llvm}.get(language, _mlir)
    return tuple(read(body.split("\n"), kernel))


_LOC = re.compile(r"^\s*\.loc\s+\d+ \d+ \d+")
_CODE_ENDS = re.compile(r"^\s*\.section\s+\.debug")


def _ptx(lines: list[str], kernel: str) -> Iterator[CodeLine]:
    place = re.compile(rf"{re.escape(kernel)}[\w.]*\.py:([0-9]{{1,9}}):")
    origin = 0
    debug = False
    for number, line in enumerate(lines, start=1):
        debug = debug or bool(_CODE_ENDS.match(line))
        if _LOC.match(line):
            found = place.findall(line)
            origin = int(found[-1]) if found else 0
            yield CodeLine(number, line, origin, only_places=True)
            continue
        words = line.partition("//")[0].rstrip()
        label = words.startswith(("$L__tmp", "$L__func", "$L__info"))
        hidden = debug or label or not words.strip()
        ended = words == "}"
        known = words.startswith("\t") and not words.strip().startswith(".")
        yield CodeLine(number, words or line, origin if known and not debug else 0, hidden)
        origin = 0 if ended else origin


_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(.*)")
_SASS_PLACE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')


def _sass(lines: list[str], kernel: str) -> Iterator[CodeLine]:
    origin = 0
    for number, line in enumerate(lines, start=1):
        match = _SASS_PLACE.match(line)
        if match:
            mine = match[1].rpartition("/")[2].startswith(kernel)
            origin = int(match[2]) if mine else 0
            yield CodeLine(number, line, origin, only_places=True)
            continue
        match = _INSTRUCTION.match(line)
        words = f"{match[1]}  {match[2]}" if match else line
        yield CodeLine(number, words, origin if match else 0, not line.strip())


_DEBUG = re.compile(r",? !dbg !(\d+)")
_DEBUG_PLACE = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+),.*?\)$")
_INLINED = re.compile(r"inlinedAt: !(\d+)")


def _llvm(lines: list[str], kernel: str) -> Iterator[CodeLine]:
    places: dict[str, tuple[int, str]] = {}
    for line in lines:
        match = _DEBUG_PLACE.match(line)
        if match:
            inlined = _INLINED.search(line)
            places[match[1]] = int(match[2]), inlined[1] if inlined else ""
    for number, line in enumerate(lines, start=1):
        debug = _DEBUG.search(line)
        origin = 0
        seen: set[str] = set()
        name = debug[1] if debug and not line.startswith("define") else ""
        while name in places and name not in seen:
            seen.add(name)
            origin, name = places[name]
        yield CodeLine(number, _DEBUG.sub("", line), origin, line.startswith("!"))


_TABLE = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_PLACE = re.compile(r" loc\(((?:[^()]|\([^()]*\))*)\)")
_FILE_PLACE = re.compile(r'^"([^"]*)":(\d+):\d+$')
_NAMED = re.compile(r'^"[^"]*"\((.*)\)$')
_CALL = re.compile(r"^callsite\(.* at (.*)\)$")


def _mlir(lines: list[str], kernel: str) -> Iterator[CodeLine]:
    table = {match[1]: match[2] for line in lines if (match := _TABLE.match(line))}

    def line_of(words: str) -> int:
        for _ in range(40):
            words = words.strip()
            if words in table:
                words = table[words]
            elif match := _FILE_PLACE.match(words):
                mine = match[1].rpartition("/")[2].startswith(kernel)
                return int(match[2]) if mine else 0
            elif match := _NAMED.match(words) or _CALL.match(words):
                words = match[1]
            else:
                return 0
        return 0

    for number, line in enumerate(lines, start=1):
        places = _PLACE.findall(line)
        opens = line.lstrip().startswith(("module", "tt.func"))
        origin = line_of(places[-1]) if places and not opens else 0
        hidden = bool(_TABLE.match(line)) or not line.strip()
        yield CodeLine(number, line if hidden else _PLACE.sub("", line), origin, hidden)
