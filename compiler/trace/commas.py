"""Texts that are lists: arguments of a call, the fields of a printed object."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[(\[{)\]},]")


def split_at_commas(text: str) -> list[str]:
    """`x=1, y=[2, 3]` -> [`x=1`, `y=[2, 3]`]: the parts between the commas that are in no bracket
    or string, without empty ones."""
    parts, depth, start = [], 0, 0
    for match in _TOKEN.finditer(text):
        letter = match.group()
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth <= 0:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]
