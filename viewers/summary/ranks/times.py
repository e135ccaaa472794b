"""How long each rank compiled, and when: who was waited for.

Wall-clock times of different hosts are only as close as their clocks.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tcw.viewers.summary.phases import compile_seconds
from tcw.viewers.summary.ranks.divergence import RankMember
from tcw.viewers.summary.ranks.events import function_of

STRAGGLER = 1.2
"""A straggler compiles more than this many times the median."""
STRAGGLER_SECONDS = 0.5
"""A straggler also compiles this many seconds longer than the median."""


@dataclass(frozen=True)
class RankTimes:
    """One rank."""

    rank: int
    seconds: float
    """Of its compiles, backwards included."""
    straggler: bool


@dataclass(frozen=True)
class CompileTimes:
    """One compile that all ranks made, in seconds."""

    compile_id: str
    function: str
    seconds: tuple[float, ...]
    """By rank, in the order of the members."""
    slowest: int
    """Its rank."""

    @property
    def spread(self) -> float:
        """What the quickest had to wait for the slowest, if they met right after it."""
        return max(self.seconds) - min(self.seconds)


def rank_times(members: Sequence[RankMember]) -> tuple[RankTimes, ...]:
    """Of every rank that was recorded whole: how long another one compiles is not known."""
    members = [member for member in members if member.complete]
    totals = [sum(took.values()) for took in _seconds(members)]
    usual = statistics.median(totals) if totals else 0.0
    return tuple(
        RankTimes(
            member.rank, total, total > usual * STRAGGLER and total > usual + STRAGGLER_SECONDS
        )
        for member, total in zip(members, totals, strict=True)
    )


def compile_times(members: Sequence[RankMember]) -> tuple[CompileTimes, ...]:
    """The compiles that every rank made, those with the longest wait first."""
    took = _seconds(members)
    shared = [name for name in (took[0] if took else ()) if all(name in one for one in took)]
    found = []
    for name in shared:
        seconds = tuple(one[name] for one in took)
        slowest = max(range(len(members)), key=lambda at: seconds[at])
        function = function_of(members[0].recording, name)
        found.append(CompileTimes(name, function, seconds, members[slowest].rank))
    return tuple(sorted(found, key=lambda times: -times.spread))


def _seconds(members: Sequence[RankMember]) -> list[dict[str, float]]:
    """Of each member, computed once for a recording that several share."""
    recordings = {id(member.recording): member.recording for member in members}
    known = {key: compile_seconds(recording) for key, recording in recordings.items()}
    return [known[id(member.recording)] for member in members]
