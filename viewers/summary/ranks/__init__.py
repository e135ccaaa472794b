"""Many ranks of one program: what they did differently first, who waited for whom.

Pure functions of the ranks' recordings.
"""

from __future__ import annotations

from viewers.summary.ranks.collectives import started
from viewers.summary.ranks.divergence import Divergence, RankMember, first_divergence, rank_words
from viewers.summary.ranks.events import Kind
from viewers.summary.ranks.times import compile_times, rank_times

__all__ = [
    "Divergence",
    "Kind",
    "RankMember",
    "compile_times",
    "first_divergence",
    "rank_times",
    "rank_words",
    "started",
]
