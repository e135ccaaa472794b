"""Lines of a table of regions, for the report and for the pane: columns, figures, bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from viewers.kit.bars import Bars
from viewers.kit.cells import cut, keep_end, pad, pad_left
from viewers.kit.figures import TimeUnit
from viewers.kit.spans import Line, Role, Span
from viewers.places import FileNames
from viewers.plain import plain
from viewers.summary.profile import RegionRow, Sums
from viewers.summary.profile.where import where
from viewers.words import numbers_text

HEADS = ("line", "region", "eager", "compiled", "Δ", "±")
LINE, REGION = "line", "region"
"""Columns of words, which stand at the left."""


@dataclass(frozen=True)
class RegionColumn:
    head: str
    size: int
    gap: int = 2
    """Blank cells before it."""

    @property
    def at_left(self) -> bool:
        return self.head in ("", LINE, REGION)


@dataclass(frozen=True)
class RegionLines:
    """Lines with the same columns; the bars, if there is room, with the same scale."""

    columns: tuple[RegionColumn, ...]
    bars: Bars | None
    bar_gap: int

    def head(self) -> Line:
        line = self.line([(column.head, "dim") for column in self.columns])
        if self.bars is None:
            return line
        lost = pad_left("lost ", self.bar_gap + self.bars.left)
        return (*line, (lost, "dim"), ("│", "faint"), (" won", "dim"))

    def line(self, cells: Sequence[Span]) -> Line:
        """A text for each column. One without a line takes the room that the line leaves."""
        sizes = [column.size for column in self.columns]
        heads = [column.head for column in self.columns]
        line, region = heads.index(LINE), heads.index(REGION)
        if not cells[line][0]:
            spare = min(sizes[line], max(0, cell_len(cells[region][0]) - sizes[region]))
            sizes[line] -= spare
            sizes[region] += spare
        spans: list[Span] = []
        for column, size, (words, role) in zip(self.columns, sizes, cells, strict=True):
            shown = pad(cut(words, size), size) if column.at_left else pad_left(words, size)
            spans.append((" " * column.gap + shown, role))
        return tuple(spans)

    def bar(self, difference: float, role: Role) -> Line:
        """Losses to the left of the axis, wins to the right; the axis alone in the noise."""
        if self.bars is None:
            return ()
        room = self.bar_gap + self.bars.left
        blank: Span = (" " * room, "text")
        axis: Span = ("│", "faint")
        if role == "dim" or not difference or not self.bars.scale:
            return (blank, axis)
        if difference < 0:
            return (blank, axis, (self.bars.won(-difference), "bar-good"))
        words = self.bars.lost(difference).lstrip(" ")
        return ((" " * (room - len(words)), "text"), (words, "bar-bad"), axis)


def figures_of(one: RegionRow | Sums, unit: TimeUnit) -> list[str]:
    """Eager, compiled, Δ and ±."""
    sides: list[float | None] = (
        [one.eager, one.compiled]
        if isinstance(one, Sums)
        else [side.median if side else None for side in (one.eager, one.compiled)]
    )
    return [*map(unit.text, sides), unit.signed(one.difference), unit.text(one.noise)]


def name_of(row: RegionRow) -> str:
    """`softmax ×12`."""
    return plain(row.label) + (f" ×{row.count}" if row.count > 1 else "")


def place_of(row: RegionRow, names: FileNames, main: str, room: int) -> str:
    """`17–20`; with its file where that is not `main`, and ` …` where others have lines in it, too.
    The module, or what else is known, where it has no line."""
    if not row.locations:
        return keep_end(plain(where(row)), room)
    file = row.locations[0].file
    lines = numbers_text(one.line for one in row.locations if one.file == file)
    more = " …" if any(one.file != file for one in row.locations) else ""
    name = "" if file == main else plain(names.short(file)).rpartition("/")[2] + ":"
    left = room - cell_len(name) - len(more)
    return keep_end(f"{name}{_ends(lines, left)}{more}", room)


def _ends(lines: str, room: int) -> str:
    """`17–20, 24, 31` -> `17…31`: no number is cut."""
    if len(lines) <= room:
        return lines
    first, last = lines.split(", ")[0].split("–")[0], lines.split(", ")[-1].split("–")[-1]
    return f"{first}…{last}" if first != last else first
