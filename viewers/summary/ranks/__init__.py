"""Many ranks of one program: what they did differently first, who waited for whom.

Pure functions of the ranks' recordings.
"""

from __future__ import annotations

from viewers.summary.ranks.collectives import Started, started
from viewers.summary.ranks.divergence import (
    Divergence,
    RankMember,
    Side,
    Wait,
    first_divergence,
    rank_words,
)
from viewers.summary.ranks.events import Kind
from viewers.summary.ranks.times import CompileTimes, RankTimes, compile_times, rank_times

__all__ = [
    "CompileTimes",
    "Divergence",
    "Kind",
    "RankMember",
    "RankTimes",
    "Side",
    "Started",
    "Wait",
    "compile_times",
    "first_divergence",
    "rank_times",
    "rank_words",
    "started",
]
