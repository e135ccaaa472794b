"""Times of one table or comparison in one unit; rates; changes with their sign."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.trace.records import CallProfile
from tcw.viewers.words import percent, seconds_text


@dataclass(frozen=True)
class TimeUnit:
    """The unit of all times in a table or a comparison."""

    name: str
    per_second: float
    digits: int = 1
    """Decimals of a table's figures."""

    def text(self, seconds: float | None) -> str:
        """`4,588.1`; `–` for None."""
        return "–" if seconds is None else f"{seconds * self.per_second:,.{self.digits}f}"

    def signed(self, seconds: float) -> str:
        """`+803.7`, `-62.6`, `0.0`."""
        words = f"{seconds * self.per_second:+,.{self.digits}f}"
        return words if words.strip("+-0.") else words[1:]

    def short(self, seconds: float) -> str:
        """For a column of seven cells: `1,076`, `45.2`, `0.31`."""
        value = abs(seconds) * self.per_second
        sign = "-" if seconds < 0 else ""
        if value >= 99.95:
            return f"{sign}{value:,.0f}"
        return f"{sign}{value:.1f}" if value >= 0.95 or self.digits == 1 else f"{sign}{value:.2f}"

    def measured(self, seconds: float) -> str:
        """With as many digits as its noise allows: `135.0`, `6.16`, `0.04`."""
        value = seconds * self.per_second
        return f"{value:,.1f}" if value >= 10 or self == MICROSECONDS else f"{value:.2f}"


SECONDS = TimeUnit("s", 1.0)
MILLISECONDS = TimeUnit("ms", 1e3)
MICROSECONDS = TimeUnit("µs", 1e6)


def unit_for(seconds: float) -> TimeUnit:
    """The unit for a table of the parts of a call of this duration."""
    if seconds < 1:
        return MICROSECONDS
    return MILLISECONDS if seconds < 1000 else SECONDS


def readable_unit(seconds: float) -> TimeUnit:
    """The most readable unit for times of this size."""
    if seconds < 0.0009995:
        return MICROSECONDS
    return MILLISECONDS if seconds < 0.9995 else SECONDS


def unit_of(head: CallProfile) -> TimeUnit:
    """The one unit of a profile's tables."""
    return unit_for(max(head.eager.median, head.compiled.median))


def change_text(seconds: float, about: bool = False) -> str:
    """`+842 µs`, `-62.6 µs`, `≈154 µs` if it was calculated."""
    sign = "≈" if about else ("+" if seconds > 0 else "-" if seconds < 0 else "")
    return f"{sign}{seconds_text(abs(seconds))}"


def share_text(share: float | None) -> str:
    """0.18 -> `18%`, 0.0001 -> `<0.1%`, None -> `–`."""
    if share is None:
        return "–"
    return "<0.1%" if 0 < share < 0.0005 else percent(share)


def rate_text(value: float | None, unit: str) -> str:
    """2.2e10, `B/s` -> `22.0 GB/s` (units of 1000)."""
    if value is None:
        return "–"
    for prefix, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            number = value / size
            return (
                f"{number:.0f} {prefix}{unit}" if number >= 100 else f"{number:.1f} {prefix}{unit}"
            )
    return f"{value:.0f} {unit}"


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
