"""Columns of text: widths by content, numbers at the right, the last column cut at the edge."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from viewers.places import cut, keep_end
from viewers.plain import plain
from viewers.text.lines import Line, Role, line

Cell = str | tuple[str, Role]


def table(
    rows: Sequence[Sequence[Cell]],
    align: str,
    indent: int = 0,
    limits: dict[int, int] | None = None,
) -> list[Line]:
    """Rows as lines. `align` has a letter a column: `l` left, `r` right, `e` left and, past its
    limit, cut at the start (paths, parameter names). `limits`: column -> most cells."""
    limits = limits or {}
    texts = [[plain(cell if isinstance(cell, str) else cell[0]) for cell in row] for row in rows]
    texts = [
        [_limited(text, align[index], limits.get(index)) for index, text in enumerate(row)]
        for row in texts
    ]
    widths = [
        max((cell_len(row[i]) for row in texts if i < len(row)), default=0)
        for i in range(len(align))
    ]
    lines = []
    for row, shown in zip(rows, texts, strict=True):
        pieces: list[Cell] = [" " * indent]
        for index, (cell, text) in enumerate(zip(row, shown, strict=True)):
            pad = " " * (widths[index] - cell_len(text))
            role: Role = "" if isinstance(cell, str) else cell[1]
            last = index == len(row) - 1
            if align[index] == "r":
                pieces += [pad, (text, role)]
            else:
                pieces += [(text, role), "" if last else pad]
            if not last and widths[index]:
                pieces.append("  ")
        lines.append(line(*pieces, fixed=True))
    return lines


def _limited(text: str, align: str, limit: int | None) -> str:
    if limit is None:
        return text
    return keep_end(text, limit) if align == "e" else cut(text, limit)


def heading(text: str, right: str = "") -> Line:
    """The title of a section, its figure after it."""
    return line((text, "accent"), (f"  {right}" if right else "", "dim"), hang=2)
