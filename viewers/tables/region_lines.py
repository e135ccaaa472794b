"""Lines of a table of regions, for the report and for the pane: columns, figures, bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tcw.viewers.file_names import FileNames
from tcw.viewers.kit.cells import cut, keep_end, pad, pad_left
from tcw.viewers.kit.figures import Bars, TimeUnit
from tcw.viewers.kit.spans import Line, Role, Span
from tcw.viewers.plain import plain
from tcw.viewers.summary.profile.rows import RegionRow, where
from tcw.viewers.summary.profile.waterfall import Sums

LINE, REGION, NOISE = "line", "region", "±"
HEADS = (LINE, REGION, "eager", "compiled", "Δ", NOISE)
FURTHER = ("launches", "roofline")
NAME = 16
"""Cells of a region's name before anything else goes: the bars, what is further known, ±."""
LEAST = 10
"""Cells of a region's name at least."""
SIDE, MOST_BARS = 5, 80
"""Cells of a side of the bars at least, and of both at most."""
PLACE = (7, 28)
"""Least and most cells of the lines."""


@dataclass(frozen=True)
class RegionColumn:
    head: str
    size: int
    gap: int = 2
    """Blank cells before it."""

    @property
    def at_left(self) -> bool:
        """Whether it holds words."""
        return self.head in ("", LINE, REGION)


@dataclass(frozen=True)
class RegionLines:
    """Lines with the same columns; the bars, if there is room, with the same scale."""

    columns: tuple[RegionColumn, ...]
    bars: Bars | None
    bar_gap: int = 2

    @classmethod
    def fitted(
        cls,
        heads: Sequence[str],
        texts: Sequence[Mapping[str, str]],
        width: int,
        lost: float,
        won: float,
    ) -> RegionLines:
        """Columns as wide as what is in them, and bars in the rest of `width`. What goes where
        there is no room: cells of the names, the bars, the last columns. `texts`: of each line, by
        head; `lost`, `won`: the largest difference of each kind."""
        sizes = {
            head: max(cell_len(head), *(cell_len(text.get(head, "")) for text in texts))
            for head in heads
        }
        sizes = {head: size for head, size in sizes.items() if size}
        whole = sizes[REGION]

        def room() -> int:
            return width - sum(sizes.values()) - 2 * len(sizes) + 1

        least = 2 * SIDE + 4
        sizes[REGION] = max(min(whole, NAME), whole - max(0, least - room()))
        drawn = room() >= least
        for head in (*reversed(FURTHER), NOISE):
            if not drawn and room() < 0:
                sizes.pop(head, None)
        if not drawn:
            sizes[REGION] = max(LEAST, min(whole, sizes[REGION] + room()))
        bars = Bars.for_values(lost, won, min(MOST_BARS, room() - 4), SIDE) if drawn else None
        gaps = (1, *[2] * len(sizes))
        columns = map(RegionColumn, sizes, sizes.values(), gaps)
        return cls(tuple(columns), bars)

    @property
    def name(self) -> int:
        """Cells of a region's name."""
        return next(column.size for column in self.columns if column.head == REGION)

    def head(self) -> Line:
        line = self.line({column.head: (column.head, "dim") for column in self.columns})
        if self.bars is None:
            return line
        lost = pad_left("lost ", self.bar_gap + self.bars.left)
        return (*line, (lost, "dim"), ("│", "faint"), (" won", "dim"))

    def line(self, cells: Mapping[str, Span]) -> Line:
        """A text for each column, by its head. One without a line takes the room that the line
        leaves."""
        sizes = {column.head: column.size for column in self.columns}
        if not cells[LINE][0]:
            spare = min(sizes[LINE], max(0, cell_len(cells[REGION][0]) - sizes[REGION]))
            sizes[LINE] -= spare
            sizes[REGION] += spare
        spans: list[Span] = []
        for column in self.columns:
            size, (words, role) = sizes[column.head], cells.get(column.head, ("", "text"))
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


def place_room(width: int) -> int:
    """Maximum number of cells of the lines in a table of `width` cells."""
    least, most = PLACE
    return max(least, min(most, width * 2 // 9))


def figure_cells(region_row: RegionRow | Sums, unit: TimeUnit) -> dict[str, str]:
    """Eager, compiled, Δ and ±, by head."""
    return dict(zip(HEADS[2:], figures_of(region_row, unit), strict=True))


def spans_of(texts: Mapping[str, str], role: Role, change: Role) -> dict[str, Span]:
    """The cells of a line: names and times in `role`, the difference in `change`."""
    roles: dict[str, Role] = {REGION: role, "eager": role, "compiled": role, "Δ": change}
    return {head: (words, roles.get(head, "dim")) for head, words in texts.items()}


def figures_of(region_row: RegionRow | Sums, unit: TimeUnit) -> list[str]:
    """Eager, compiled, Δ and ±."""
    sides: list[float | None] = (
        [region_row.eager, region_row.compiled]
        if isinstance(region_row, Sums)
        else [side.median if side else None for side in (region_row.eager, region_row.compiled)]
    )
    return [*map(unit.text, sides), unit.signed(region_row.difference), unit.text(region_row.noise)]


def name_of(row: RegionRow) -> str:
    """`softmax ×12`."""
    return plain(row.label) + (f" ×{row.count}" if row.count > 1 else "")


def place_of(row: RegionRow, names: FileNames, main: str, room: int) -> str:
    """`17–20`; with its file where that is not `main`, and ` …` where others have lines in it, too.
    The module, or what else is known, if it has no line."""
    if not row.locations:
        return keep_end(plain(where(row)), room)
    return names.few([(location.file, location.line) for location in row.locations], main, room)
