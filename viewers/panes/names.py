"""Lines and scheduler nodes in the few cells of a gutter or a list."""

from __future__ import annotations

import re

from tcw.compiler.trace.records import Location
from tcw.viewers.kit.cells import pad_left
from tcw.viewers.plain import plain
from tcw.viewers.words import numbers_text


def line_text(location: Location | None, inferred: bool = False) -> str:
    """The gutter: `  19 `, ` ≈18 `, blanks if no line is known."""
    if location is None:
        return " " * 5
    number = f"≈{location.line}" if inferred else str(location.line)
    return pad_left(number, 4) + " "


def operations_text(name: str) -> str:
    """`op9_op10_op11` -> `op9–11`, `op1_op4` -> `op1,4`; other names as they are."""
    parts = name.split("_")
    if len(parts) > 1 and all(re.fullmatch(r"op[0-9]{1,9}", part) for part in parts):
        numbers = sorted(int(part[2:]) for part in parts)
        if numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"op{numbers[0]}–{numbers[-1]}"
        return "op" + numbers_text(numbers).replace(", ", ",")
    return plain(name)
