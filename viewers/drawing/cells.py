"""The visible part of a layout as characters, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tcw.viewers.drawing.layout import TILE_HEIGHT, TILE_WIDTH, Down, DrawnBlocks, Line

NORTH, EAST, SOUTH, WEST = 1, 2, 4, 8


def _glyphs() -> str:
    drawn = {
        NORTH: "│", SOUTH: "│", NORTH | SOUTH: "│", EAST: "─", WEST: "─", EAST | WEST: "─",
        SOUTH | EAST: "╭", SOUTH | WEST: "╮", NORTH | EAST: "╰", NORTH | WEST: "╯",
        NORTH | SOUTH | EAST: "├", NORTH | SOUTH | WEST: "┤", EAST | WEST | SOUTH: "┬",
        EAST | WEST | NORTH: "┴", 15: "┼",
    }  # fmt: skip
    return "".join(drawn.get(bits, " ") for bits in range(16))


GLYPHS = _glyphs()
"""Directions in which a line leaves a cell -> its character."""

What = Literal["blank", "edge", "path", "block"]


@dataclass(frozen=True, slots=True)
class CellRun:
    """Cells of one row that look alike, or one row of a block."""

    x: int
    width: int
    what: What
    words: str = ""
    """The characters of lines; empty for a block, whose text the caller has."""
    block: int = -1
    line: int = 0
    """Which row of the block."""


def bits_of(lines: Iterable[Line], y: int, left: int, right: int) -> dict[int, int]:
    """Column -> directions of the lines that cross row `y` between two columns."""
    found: dict[int, int] = {}
    for line in lines:
        if isinstance(line, Down):
            if not left <= line.x < right:
                continue
            north = NORTH if line.top <= 2 * y < line.bottom else 0
            south = SOUTH if line.top <= 2 * y + 1 < line.bottom else 0
            if north or south:
                found[line.x] = found.get(line.x, 0) | north | south
        elif line.y == y and line.left < right and line.right >= left:
            for x in range(max(left, line.left), min(right, line.right + 1)):
                east = EAST if x < line.right else 0
                west = WEST if x > line.left else 0
                found[x] = found.get(x, 0) | east | west
    return found


def row(
    layout: DrawnBlocks, y: int, left: int, right: int, path: Iterable[Line] = ()
) -> list[CellRun]:
    """The runs of a row between two columns, left to right; blanks are left out.

    `path`: highlighted lines. A block that is cut by `left` or `right` is returned whole.
    """
    lines: dict[Line, None] = {}
    blocks: dict[int, None] = {}
    for column in range(max(0, left) // TILE_WIDTH, max(0, right - 1) // TILE_WIDTH + 1):
        for line, number in layout.tile(y // TILE_HEIGHT, column):
            if line is not None:
                lines[line] = None
            else:
                box = layout.boxes[number]
                if box.y <= y < box.y + box.height and box.x < right and left < box.x + box.width:
                    blocks[number] = None
    runs = [
        CellRun(layout.boxes[n].x, layout.boxes[n].width, "block", "", n, y - layout.boxes[n].y)
        for n in blocks
    ]
    quiet, loud = bits_of(lines, y, left, right), bits_of(path, y, left, right)
    for x, bits in quiet.items():
        own = loud.get(x, 0)
        runs.append(CellRun(x, 1, "path" if own else "edge", GLYPHS[bits]))
    return sorted(runs, key=lambda run: run.x)
