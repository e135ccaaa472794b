"""Which of the trials to recommend."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.trace.records import Trial

TOGETHER = "together"
"""Id of the trial that combines everything that helped."""


def best_of_groups(trials: Sequence[Trial]) -> list[Trial]:
    """The kept trials, most helpful first, one per group: the first one tried, and so the one that
    changes least, among those that are not slower than the best beyond the noise."""
    kept = [one for one in trials if one.kept and one.id != TOGETHER]
    found = []
    for group in dict.fromkeys(one.group or one.id for one in kept):
        ways = [one for one in kept if (one.group or one.id) == group]
        best = min(ways, key=lambda one: one.difference)
        close = (one for one in ways if one.difference <= best.difference + best.noise)
        found.append(next(close))
    return sorted(found, key=lambda one: one.difference)


def chosen(trials: Sequence[Trial]) -> Trial | None:
    """The combined trial if it was kept, else the one that helped most; None if none did."""
    together = (one for one in trials if one.id == TOGETHER and one.kept)
    return next(together, next(iter(best_of_groups(trials)), None))
