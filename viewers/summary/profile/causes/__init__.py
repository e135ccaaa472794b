"""Why regions were lost or won: one file a cause, each registered in `LOOKS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from viewers.summary.profile.causes.cause import Cause, Kind, Suggestion
from viewers.summary.profile.index import Index
from viewers.summary.profile.rows import RegionRow

Look = Callable[[Index, Sequence[RegionRow]], Iterable[Cause]]

LOOKS: tuple[Look, ...] = ()


def causes_of(index: Index, rows: Sequence[RegionRow]) -> tuple[Cause, ...]:
    """What was lost, most seconds first; then what was won. Nothing inside the noise."""
    found = [cause for look in LOOKS for cause in look(index, rows)]
    return tuple(sorted(found, key=lambda cause: (not cause.lost, -abs(cause.seconds))))


__all__ = ["LOOKS", "Cause", "Kind", "Suggestion", "causes_of"]
