"""Which of the trials is what to ask for."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.trace.records import Trial

TOGETHER = "together"
"""Id of the trial of all that helped."""


def best_of_groups(trials: Sequence[Trial]) -> list[Trial]:
    """What was kept, the most helpful first, of each group one: the first that was tried, and so
    the one that changes least, of those that are no slower beyond the noise than the best."""
    kept = [one for one in trials if one.kept and one.id != TOGETHER]
    found = []
    for group in dict.fromkeys(one.group or one.id for one in kept):
        ways = [one for one in kept if (one.group or one.id) == group]
        best = min(ways, key=lambda one: one.difference)
        close = (one for one in ways if one.difference <= best.difference + best.noise)
        found.append(next(close))
    return sorted(found, key=lambda one: one.difference)


def chosen(trials: Sequence[Trial]) -> Trial | None:
    """All that helped together, where that was kept, else what helped most; None for nothing."""
    together = (one for one in trials if one.id == TOGETHER and one.kept)
    return next(together, next(iter(best_of_groups(trials)), None))
