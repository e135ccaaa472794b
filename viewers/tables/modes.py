"""The ways to run the model, each against eager."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import ModeRow
from tcw.viewers.kit.cells import cut
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import Cell, table
from tcw.viewers.summary.profile.profile_verdict import mode_in_noise
from tcw.viewers.words import (
    PEAK_STEP,
    number,
    percent,
    ratio_text,
    seconds_text,
    stepped_bytes_text,
)

NAME = 26
"""Maximum number of cells of a mode's name."""
_HEADS = ("mode", "eager", "a call", "speed-up", "±", "compiled in", "peak", "pays after")
_DROP = (1, 6, 5, 4, 7)
"""What a narrow table drops: never the speed-up."""


def modes_lines(rows: Sequence[ModeRow], width: int, indent: int) -> list[TextLine]:
    """A head, then a line for each mode."""
    best = max((one.speedup for one in rows if one.time and one.name != "eager"), default=0.0)
    cells: list[list[Cell]] = [[(word, "dim") for word in _HEADS]]
    cells += [_cells(row, best) for row in rows]
    return table(cells, "lrrrrrrl", width, indent, _DROP)


def notes_lines(rows: Sequence[ModeRow]) -> list[TextLine]:
    """Why a mode was not timed, or what it came to."""
    return [
        line(("·  ", "dim"), one.name, (f"  {one.reason or one.note}", "dim"), hang=3)
        for one in rows
        if one.reason or one.note
    ]


def _cells(row: ModeRow, best: float) -> list[Cell]:
    name = cut(row.name, NAME)
    if row.time is None:
        nothing: Cell = ("–", "dim")
        return [name, nothing, nothing, nothing, "", "", "", ""]
    compared = row.name != "eager"
    quiet = mode_in_noise(row)
    role: Role = "dim" if quiet or not compared else "good" if row.speedup > 1 else "bad"
    return [
        (name, "strong" if compared and row.speedup == best else "text"),
        (seconds_text(row.eager.median) if compared and row.eager else "", "dim"),
        seconds_text(row.time.median),
        (ratio_text(row.speedup), role),
        (percent(row.noise), "dim"),
        seconds_text(row.compile_seconds) if row.compile_seconds else ("–", "dim"),
        ("–", "dim") if row.peak_bytes is None else stepped_bytes_text(row.peak_bytes, PEAK_STEP),
        _pays(row, quiet) if compared else "",
    ]


def _pays(row: ModeRow, quiet: bool) -> Cell:
    if quiet:
        return ("in noise", "dim")
    if row.pays_after is not None:
        return f"{number(row.pays_after)} calls"
    return ("never", "bad")
