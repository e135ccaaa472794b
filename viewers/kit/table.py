"""Columns of text: widths by content, numbers right-aligned, long columns cut to fit."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tcw.viewers.kit.cells import cut, keep_end
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.plain import plain

Cell = str | tuple[str, Role]
GAP = 2
LEAST = 10
"""Cells that a column keeps even on the narrowest terminal."""


def table(
    rows: Sequence[Sequence[Cell]],
    align: str,
    width: int,
    indent: int = 0,
    drop: Sequence[int] = (),
    least: int = LEAST,
) -> list[TextLine]:
    """Rows as lines of at most `width` cells. `align` has one letter per column:

    `l` left and `r` right, cut only if the column alone is wider than `width`; `f` left, cut at its
    end (`›`) if space is short; `e` left, cut at its start (`…`), for paths and parameter names,
    which differ at the end. `drop`: the columns that go, one after the other, before a flexible
    one has fewer than `least` cells.
    """
    texts = [[plain(cell if isinstance(cell, str) else cell[0]) for cell in row] for row in rows]
    widths = _widths(texts, align, width - indent, drop, least)
    lines = []
    for row, shown in zip(rows, texts, strict=True):
        pieces: list[Cell] = [" " * indent]
        gap = ""
        for cell, text, kind, size in zip(row, shown, align, widths, strict=True):
            if not size:
                continue
            fit = keep_end(text, size) if kind == "e" else cut(text, size)
            pad = " " * (size - cell_len(fit))
            styled = (fit, "text" if isinstance(cell, str) else cell[1])
            pieces += [gap + pad, styled] if kind == "r" else [gap, styled]
            gap = " " * GAP + ("" if kind == "r" else pad)
        lines.append(line(*pieces, fixed=True))
    return lines


def _widths(
    texts: Sequence[Sequence[str]], align: str, room: int, drop: Sequence[int], least: int
) -> list[int]:
    """Cells of each column; 0 for one that is empty or dropped."""
    columns = range(len(align))
    natural = [min(room, max((cell_len(row[i]) for row in texts), default=0)) for i in columns]
    for dropped in range(len(drop) + 1):
        widths = [0 if i in drop[:dropped] else natural[i] for i in columns]
        if _shrink(widths, align, room, least):
            return widths
    _shrink(widths, align, room, LEAST)
    return widths


def _shrink(widths: list[int], align: str, room: int, least: int) -> bool:
    """Take cells from the widest flexible column until all fit; whether they do."""
    over = sum(widths) + GAP * (sum(map(bool, widths)) - 1) - room
    flexible = [index for index, kind in enumerate(align) if kind in "ef"]
    while over > 0 and flexible:
        widest = max(flexible, key=lambda index: widths[index])
        if widths[widest] <= least:
            break
        widths[widest] -= 1
        over -= 1
    return over <= 0


def heading(text: str, right: str = "") -> TextLine:
    """The title of a section, followed by its figure."""
    return line((text, "accent"), (f"  {right}" if right else "", "dim"), hang=2)
