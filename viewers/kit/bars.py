"""Bars on both sides of an axis: what was lost to the left, what was won to the right."""

from __future__ import annotations

from dataclasses import dataclass

_EIGHTHS = " ▏▎▍▌▋▊▉"


def cells_of(value: float, most: float, room: int) -> int:
    """Cells of a bar on a scale on which `most` takes `room` cells: from 0 to `room`, whatever the
    values."""
    if value <= 0 or most <= 0:
        return 0
    return round(room * min(1.0, value / most))


@dataclass(frozen=True)
class Bars:
    """Cells on each side of the axis, and what one cell represents."""

    left: int
    right: int
    scale: float
    """In the unit of the values; 0 where all are 0."""

    @classmethod
    def for_values(cls, lost: float, won: float, cells: int, least: int) -> Bars:
        """Both sides on one scale. `lost`, `won`: the largest value of each side, from 0;
        `cells`: for both together; `least`: what each side keeps for its heading."""
        room = max(cells, 2 * least)
        total = lost + won
        if total <= 0:
            return cls(room // 2, room - room // 2, 0.0)
        left = min(max(round(room * lost / total), least), room - least)
        right = room - left
        return cls(left, right, max(lost / left, won / right))

    def lost(self, value: float) -> str:
        """A bar that ends at the axis, in `left` cells."""
        cells, half = divmod(round(2 * self._cells(value, self.left)), 2)
        bar = ("▐" if half else "") + "█" * cells
        return (bar or "▐")[-self.left :].rjust(self.left)

    def won(self, value: float) -> str:
        """A bar that begins at the axis, in at most `right` cells."""
        cells, eighths = divmod(round(8 * self._cells(value, self.right)), 8)
        bar = "█" * cells + (_EIGHTHS[eighths] if eighths else "")
        return (bar or "▏")[: self.right]

    def _cells(self, value: float, room: int) -> float:
        return min(room, value / self.scale) if self.scale else 0.0
