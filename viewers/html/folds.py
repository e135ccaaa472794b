"""A pane with all that is folded in it, so that the page opens each fold by itself.

Each row has a condition: which folds have to be open, and which closed, for it to be seen. A fold
qualifies if opening it changes only the rows around it; one that lays the pane out again is left to
a screen of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tcw.viewers.html.pool import Distinct
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.targets import Fold

RowsOf = Callable[[frozenset[str]], Sequence[Row]]
"""The rows of a pane with these folds open."""


class Conditions:
    """The conditions of a document. 0 always holds."""

    def __init__(self) -> None:
        self.folds: Distinct[str] = Distinct()
        self.numbers: Distinct[tuple[int, int, int]] = Distinct()
        """Fold, whether it has to be open, and a condition that has to hold as well."""

    def when(self, fold: str, opened: bool, also: int) -> int:
        return 1 + self.numbers.number((self.folds.number(fold), int(opened), also))


@dataclass
class Folded:
    """The rows of a pane, seen or not. The three lists are parallel."""

    rows: list[Row] = field(default_factory=list)
    when: list[int] = field(default_factory=list)
    folds: list[int] = field(default_factory=list)
    """The fold that a row opens and closes, by its number; -1 for none."""


def with_folds(
    rows_of: RowsOf, opened: frozenset[str], conditions: Conditions, most: int
) -> Folded:
    """About `most` rows at most; a fold that does not fit stays closed. `opened`: folds that are
    open to begin with, which no reader of the page closes."""
    folded = Folded()
    rows = rows_of(opened)
    if len(rows) > most:
        folded.rows = list(rows[:most])
        folded.when, folded.folds = [0] * most, [-1] * most
        return folded
    maker = _Maker(rows_of, conditions, folded, most - len(rows))
    maker.take(opened, rows, range(len(rows)), 0, frozenset())
    return folded


class _Maker:
    def __init__(self, rows_of: RowsOf, conditions: Conditions, found: Folded, room: int) -> None:
        self._rows_of = rows_of
        self._conditions = conditions
        self._found = found
        self._room = room

    def take(
        self,
        opened: frozenset[str],
        rows: Sequence[Row],
        part: range,
        when: int,
        own: frozenset[str],
    ) -> None:
        """Add a part of the rows that are seen where `opened` is open. `own`: the folds that the
        page opens and closes there."""
        at = part.start
        while at < part.stop:
            row = rows[at]
            key = row.opens.key if isinstance(row.opens, Fold) else ""
            if key and key not in own and key not in opened:
                with_it = self._rows_of(opened | {key})
                end = _end(rows, with_it, at)
                added = len(with_it) - len(rows) + end - at
                if end <= part.stop and 0 < added <= self._room:
                    self._room -= added
                    closed = self._conditions.when(key, False, when)
                    self.take(opened, rows, range(at, end), closed, own | {key})
                    inside = range(at, at + added)
                    open_too = self._conditions.when(key, True, when)
                    self.take(opened | {key}, with_it, inside, open_too, own | {key})
                    at = end
                    continue
            self._found.rows.append(row)
            self._found.when.append(when)
            self._found.folds.append(self._conditions.folds.number(key) if key in own else -1)
            at += 1


def _end(rows: Sequence[Row], others: Sequence[Row], at: int) -> int:
    """The end of the rows that differ from `at` on; beyond all rows if they differ before it."""
    if rows[:at] != others[:at]:
        return len(rows) + 1
    same = 0
    most = min(len(rows), len(others)) - at - 1
    while same < most and rows[len(rows) - 1 - same] == others[len(others) - 1 - same]:
        same += 1
    return len(rows) - same
