"""Loop nests of Inductor in tests, from their text."""

from __future__ import annotations

import re

from compiler.inductor.loops import Loop, Loops

_LOOP = re.compile(r" *(for|reduce) (\w+) in (.+):$")


def loops_in(text: str) -> Loops:
    """The loops of a body as `loop_text` prints it, and its statements."""
    loops: list[Loop] = []
    lines = text.splitlines()
    while lines and (match := _LOOP.match(lines[0])) is not None:
        loops.append((match[1], match[2], match[3]))
        lines.pop(0)
    margin = "  " * len(loops)
    return loops, [line.removeprefix(margin) for line in lines]
