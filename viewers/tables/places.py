"""A source line with its place, and carets under the range in question."""

from __future__ import annotations

from rich.cells import cell_len

from tcw.viewers.kit.cells import cut, keep_end
from tcw.viewers.kit.highlight import highlight
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Line
from tcw.viewers.kit.table import Cell
from tcw.viewers.places import FileNames
from tcw.viewers.plain import plain
from tcw.viewers.summary.place import Place

LONG_NAME = 24
"""Cells of `file:line` from which it may get a line of its own."""


def place_lines(
    place: Place, names: FileNames, indent: int, width: int, label: str = ""
) -> list[TextLine]:
    """`block.py:26 if h.abs().max() > 8:` and, where torch gave columns, carets below it.

    A file name so long that the code would be cut gets a line of its own. `label`: the words before
    it.
    """
    lead: Cell = (" " * indent + label, "dim")
    indent += cell_len(label)
    where = plain(names.place(place.file, place.line))
    start = indent + cell_len(where) + 2
    if cell_len(plain(place.text.strip())) > width - start and cell_len(where) > LONG_NAME:
        lines, start = [line(lead, (keep_end(where, width - indent), "dim"), fixed=True)], indent
        code, first, last = window(place, max(20, width - start))
        lines.append(line(" " * indent, *_coloured(code), fixed=True))
    else:
        code, first, last = window(place, max(20, width - start))
        lines = [line(lead, (where, "dim"), "  ", *_coloured(code), fixed=True)]
    if first is not None and last is not None and last > first and code:
        carets = "^" * (last - first)
        lines.append(line(" " * (start + first), (carets, "bad"), fixed=True))
    return lines


def _coloured(code: str) -> Line:
    return highlight(code, "python")[0]


def window(place: Place, width: int) -> tuple[str, int | None, int | None]:
    """The line without its indent in at most `width` cells, and the range in it, in cells.

    If the range lies past the width, the start of the line is cut instead of its end. A range that
    covers the whole statement adds nothing and gives None.
    """
    text = place.text.rstrip()
    indent = len(text) - len(text.lstrip())
    code = plain(text[indent:])
    if place.column is None or place.end_column is None or place.column < indent:
        return cut(code, width), None, None
    first = cell_len(plain(text[indent : place.column]))
    last = min(cell_len(plain(text[indent : place.end_column])), cell_len(code))
    if first == 0 and last >= cell_len(code):
        return cut(code, width), None, None
    if last > width - 1 and first > width // 2:
        dropped = 0
        while code and dropped < first - width // 3:
            dropped += cell_len(code[0])
            code = code[1:]
        code = "…" + code
        first, last = first - dropped + 1, last - dropped + 1
    shown = cut(code, width)
    return shown, first, min(last, cell_len(shown))
