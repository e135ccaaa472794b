"""The processes of a folder: the ranks' first difference, then the groups that did the same."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace import refs
from tcw.viewers.kit.cells import cut, pad
from tcw.viewers.kit.lines import TextLine, fitted, line
from tcw.viewers.kit.spans import Line
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, text_row
from tcw.viewers.panes.targets import ToProcess
from tcw.viewers.panes.view import View
from tcw.viewers.plain import plain
from tcw.viewers.summary.place import Place
from tcw.viewers.text.processes import Process, Several, counts_of, who
from tcw.viewers.text.ranks import divergence_lines, times_lines

NAMES = 40
"""Maximum number of cells of the names of a group."""
UNREAD = 40
"""Rows of logs that were not decoded; more are counted."""


def content(view: View, width: int) -> Content:
    several = view.several
    if several is None:
        return Content("ranks", rows=empty(width, "one recording: tcw open FOLDER shows several"))
    rows: list[Row] = [BLANK]
    divergence = several.divergence
    if divergence is not None:
        rows += _rows(
            divergence_lines(divergence, several.names, width - 2), width, divergence.place
        )
        rows.append(BLANK)
    several_groups = len(several.groups) > 1 or several.unread
    rows.append(text_row((" who did the same" if several_groups else " all", "dim")))
    start = ""
    cells = min(NAMES, max(len(plain(who(members))) for members in several.groups))
    for number, members in enumerate(several.groups):
        row = _group(number, members, view, several, cells)
        rows.append(row)
        if any(member.file == view.recording.file for member in members):
            start = row.key
    if several.unread:
        rows += [BLANK, *_rows([line((several.unread_words, "dim"))], width, None)]
        rows += _unread(several, cells)
    times = times_lines(several.ranks)
    if times:
        rows += [BLANK, *_rows(times, width, None)]
    return Content("ranks", plain(several.headline), rows=rows, start=start, still=True)


def _rows(lines: Sequence[TextLine], width: int, place: Place | None) -> list[Row]:
    ref = refs.source(place.file, place.line) if place is not None else ""
    return [
        text_row(" ", *text_line.spans, selects=ref, key=f"difference:{at}" if ref else "")
        for at, text_line in enumerate(fitted(lines, width - 2))
    ]


def _group(
    number: int, members: Sequence[Process], view: View, several: Several, cells: int
) -> Row:
    shown = any(member.file == view.recording.file for member in members)
    names = pad(cut(plain(who(members)), cells), cells)
    counts = plain(counts_of(members[0], several.summaries[members[0]]))
    return text_row(
        (" ● " if shown else " ▸ ", "accent" if shown else "faint"),
        (names, "strong"),
        f"  {counts}",
        at=ToProcess(number),
    )


def _unread(several: Several, cells: int) -> list[Row]:
    """Logs that were only skimmed, the first to differ first."""
    ordered = several.unread
    usual = {process.file: process.name for process in several.processes}
    first = len(several.groups)
    rows = []
    for number, unread in enumerate(ordered[:UNREAD], first):
        differs = (
            f"differs from {usual[unread.usual]} in compile {unread.compile}"
            if unread.compile
            else ""
        )
        body: Line = (
            (" ▸ ", "faint"),
            (pad(cut(plain(unread.name), cells), cells), "text"),
            (f"  {plain(differs)}", "dim"),
        )
        rows.append(Row(body=body, at=ToProcess(number)))
    if len(ordered) > UNREAD:
        rows.append(text_row((f"   {len(ordered) - UNREAD:,} more", "faint")))
    return rows
