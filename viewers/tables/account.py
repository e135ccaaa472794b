"""Where the time of both calls goes, how much remains unexplained; and their memory."""

from __future__ import annotations

from rich.cells import cell_len

from tcw.compiler.trace.records import Account, CallProfile
from tcw.viewers.kit.bars import cells_of
from tcw.viewers.kit.figures import TimeUnit
from tcw.viewers.kit.lines import TextLine, line
from tcw.viewers.kit.spans import Role
from tcw.viewers.kit.table import GAP, Cell, heading, table
from tcw.viewers.summary.profile.accounts import (
    AccountTable,
    BothSides,
    is_doubtful,
    open_remainder,
)
from tcw.viewers.words import NOT_MEASURED, PEAK_STEP, bytes_text, percent, stepped_bytes_text

BARS: tuple[Role, Role] = ("bar", "bar-accent")
SHORTEST, LONGEST = 8, 16
"""Width of a bar: the cells that the table leaves."""


def account_lines(found: AccountTable, unit: TimeUnit, width: int, indent: int) -> list[TextLine]:
    """A head, a line for each of the rows, the remainder, and the call. Bars where they fit."""
    rows: list[list[Cell]] = [
        ["", ("eager", "dim"), "", ("compiled", "dim"), "", ""],
        *([one.name, *_times(found, one.seconds, unit), (one.what, "dim")] for one in found.rows),
        _remainder(found, unit),
        [("call", "strong"), *_call(found, unit), ""],
    ]
    align, drop = "lrrrrf", [2, 4, 5]
    spare = width - max(cell_len(one.text) for one in table(rows, align, 10 * width, indent))
    bar = min(LONGEST, spare // 2 - GAP)
    if bar >= SHORTEST:
        drawn = [(None, None), *(one.seconds for one in found.rows), found.remainder, (None, None)]
        most = max(one or 0.0 for both in (*drawn, found.measured) for one in both)
        for row, seconds in zip(rows, drawn, strict=True):
            row[-1:-1] = [
                ("█" * cells_of(value or 0.0, most, bar), role)
                for value, role in zip(seconds, BARS, strict=True)
            ]
        align, drop = "lrrrrllf", []
    return table(rows, align, width, indent, drop)


def doubt_lines(found: AccountTable, indent: int) -> list[TextLine]:
    """Why the lines of a side have no shares."""
    if not found.doubtful:
        return []
    words = "rounds differ too much: the lines and the call are of different rounds, so "
    return [line(" " * indent, (words + _WHOSE[found.doubtful], "warn"), hang=indent)]


_WHOSE = {
    ("eager",): "eager has no shares",
    ("compiled",): "the compiled side has no shares",
    ("eager", "compiled"): "neither side has shares",
}


def _times(found: AccountTable, both: BothSides, unit: TimeUnit) -> list[Cell]:
    cells: list[Cell] = []
    for side, seconds in zip(found.sides, both, strict=True):
        known = side is not None and seconds is not None
        cells.append(unit.text(seconds) if known else ("–", "dim"))
        cells.append((_share(side, seconds), "dim"))
    return cells


def _remainder(found: AccountTable, unit: TimeUnit) -> list[Cell]:
    cells: list[Cell] = ["remainder"]
    more = False
    for side in found.sides:
        more = more or (side is not None and side.remainder < 0 and open_remainder(side))
        role: Role = "bad" if side is not None and open_remainder(side) else "dim"
        seconds = side.remainder if side is not None else None
        cells += [(unit.text(seconds), role), (_share(side, seconds), role)]
    what = "measured, minus all of the above"
    if found.in_noise:
        what = f"minus all of the above (in noise: {' and '.join(found.in_noise)})"
    if more:
        return [*cells, ("below 0: the parts were timed in other, slower rounds", "warn")]
    return [*cells, (what, "dim")]


def _call(found: AccountTable, unit: TimeUnit) -> list[Cell]:
    return [cell for one in found.measured for cell in ((unit.text(one), "strong"), "")]


def _share(account: Account | None, seconds: float | None) -> str:
    if account is None or seconds is None or account.measured.median <= 0:
        return ""
    if is_doubtful(account):
        return ""
    share = seconds / account.measured.median
    return f"-{percent(-share)}" if share < 0 else percent(share)


def memory_lines(head: CallProfile) -> list[TextLine]:
    """The bytes of both calls, those that were measured."""
    rows: list[list[Cell]] = []
    for what, eager, compiled, step in (
        ("peak of one call", head.eager_peak_bytes, head.compiled_peak_bytes, PEAK_STEP),
        ("saved for the backward", head.eager_saved_bytes, head.compiled_saved_bytes, 1),
    ):
        if eager is not None or compiled is not None:
            change = _change(eager, compiled, step)
            rows.append([what, _size(eager, step), "→", _size(compiled, step), (change, "dim")])
    return [heading("memory", "eager → compiled"), *table(rows, "lrlrl", 100, 2)] if rows else []


def _size(size: int | None, step: int) -> Cell:
    return (NOT_MEASURED, "dim") if size is None else stepped_bytes_text(size, step)


def _change(eager: int | None, compiled: int | None, step: int) -> str:
    if eager is None or compiled is None or abs(compiled - eager) < step:
        return ""
    return f"{bytes_text(abs(compiled - eager))} {'more' if compiled > eager else 'less'}"
