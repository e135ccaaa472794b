r"""A unified diff in the form that `git apply` and `patch -p1` accept, and a strict reader of it.

Only `\n` ends a line, as for those programs: form feeds, U+2028 and the `\r` of `\r\n` are ordinary
text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from tcw.compiler.protocol.edits.edit import EditError

_NO_NEWLINE = "\\ No newline at end of file\n"
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@\n")
_QUOTED = {'"': '\\"', "\\": "\\\\"}


def diff(name: str, before: str, after: str) -> str:
    """The patch of one file; "" if nothing changed. `name` is the file's path from the folder in
    which the patch is applied.

    Raises `EditError` for a name that a patch cannot carry safely.
    """
    made = difflib.unified_diff(
        _lines(before), _lines(after), _header("a", name), _header("b", name), n=3
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in made)


def applied(patch: str, files: Mapping[str, str]) -> dict[str, str]:
    """The texts of all files that a patch changes, by name, after applying it to `files`.

    Much stricter than those programs: every line must be where its hunk says, and each file is
    patched once. Raises `EditError` for anything that `diff` does not write.
    """
    names = {(_header("a", name), _header("b", name)): name for name in files}
    lines = _lines(patch)
    place = 0
    found: dict[str, str] = {}
    while place < len(lines):
        old, new = (_after(lines, place + one, mark) for one, mark in ((0, "--- "), (1, "+++ ")))
        name = names.get((old, new))
        if name is None or name in found:
            raise EditError(f"line {place + 1} of the patch does not start an edited file")
        found[name], place = _patched(_lines(files[name]), lines, place + 2)
    return found


def _patched(before: list[str], lines: list[str], place: int) -> tuple[str, int]:
    """A file's text after applying its hunks, which start at a line of the patch, and their end."""
    after: list[str] = []
    taken = 0
    while place < len(lines) and (hunk := _HUNK.fullmatch(lines[place])) is not None:
        start, count, to, to_count = (1 if group is None else int(group) for group in hunk.groups())
        first = start - 1 if count else start
        if not taken <= first <= len(before):
            raise EditError(f"the hunk at line {place + 1} of the patch is out of order")
        after += before[taken:first]
        taken = first
        if len(after) != (to - 1 if to_count else to):
            raise EditError(f"the hunk at line {place + 1} of the patch has the wrong line number")
        place += 1
        while count or to_count:
            mark, text, place = _body(lines, place)
            if mark not in " -+" or (mark != "+" and before[taken : taken + 1] != [text]):
                raise EditError(f"line {place} of the patch does not match the file")
            taken += mark != "+"
            count -= mark != "+"
            to_count -= mark != "-"
            if mark != "-":
                after.append(text)
            if count < 0 or to_count < 0:
                raise EditError(f"line {place} of the patch is beyond its hunk")
    after += before[taken:]
    return "".join(after), place


def _body(lines: list[str], place: int) -> tuple[str, str, int]:
    """The mark and the text of a line of a hunk, and the index of the next line."""
    line = _after(lines, place, "", keep=True)
    if place + 1 < len(lines) and lines[place + 1] == _NO_NEWLINE:
        return line[0], line[1:-1], place + 2
    return line[0], line[1:], place + 1


def _after(lines: list[str], place: int, mark: str, keep: bool = False) -> str:
    """The rest of a patch line after its prefix."""
    if place >= len(lines) or not lines[place].startswith(mark) or not lines[place].endswith("\n"):
        raise EditError(f"line {place + 1} of the patch is not valid")
    return lines[place] if keep else lines[place][len(mark) : -1]


def _lines(text: str) -> list[str]:
    r"""With their `\n`, which the last may lack."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _header(side: str, name: str) -> str:
    """`a/model.py`, as git quotes it."""
    if not name or any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in name):
        raise EditError(f"a patch cannot carry the file name {name!r}")
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise EditError(f"a patch cannot carry the path {name!r}")
    whole = f"{side}/{name}"
    try:
        quoted = "".join(_quoted(letter) for letter in whole)
    except UnicodeEncodeError as error:
        raise EditError(f"a patch cannot carry the file name {name!r}: it is not UTF-8") from error
    if quoted != whole:
        return f'"{quoted}"'
    return f"{whole}\t" if " " in whole else whole  # else the name ends at its space


def _quoted(letter: str) -> str:
    if letter in _QUOTED:
        return _QUOTED[letter]
    if letter.isascii():
        return letter
    return "".join(f"\\{byte:03o}" for byte in letter.encode())
