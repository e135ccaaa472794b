"""The readings of the rounds of one call, by side, key and round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from tcw.compiler.measure.compiled.guard_cost import GuardCosts
from tcw.compiler.measure.probes.between import in_rounds
from tcw.compiler.measure.probes.clock import Reading
from tcw.compiler.measure.probes.code_probe import CodeProbe
from tcw.compiler.measure.probes.laps import Laps, Side
from tcw.compiler.measure.probes.library_calls import less_calling, times
from tcw.compiler.measure.regions.origins import Origins
from tcw.compiler.measure.regions.same_sites import Canonical
from tcw.compiler.trace.records.profile import CallPhase, EagerOperation, Unmeasured


@dataclass
class Measured:
    """The results of the rounds of one call."""

    call: int
    device: str
    probes: Sequence[CodeProbe]
    bases: Sequence[int]
    """The first key of each probe: that of its whole graph; its steps follow."""
    end: int
    """The first key that belongs to no graph: keys from here on are of what runs outside the
    graphs."""
    origins: Origins
    canonical: Canonical
    """Paths of the eager side's modules."""
    operations: Sequence[EagerOperation]
    """By key of their readings."""
    laps: dict[Side, Laps]
    guards: GuardCosts
    phase: CallPhase = ""
    """The only phase, of an optimizer's step; "" for a call."""
    compiled_again: int = 0
    contended: bool = False
    whole_only: bool = False
    """Whether only whole calls were recorded."""
    unmeasured: Sequence[tuple[Unmeasured, str]] = ()
    """What could not be measured, and why."""
    peaks: dict[Side, int | None] = field(default_factory=dict)
    saved: dict[Side, int] = field(default_factory=dict)

    def compiled_rounds(self, laps: Laps) -> SideRounds:
        """The readings of these laps of the compiled side, with library calls timed as on the eager
        side."""
        side = SideRounds(laps, self.end)
        calls = [lap.inside for lap in laps.get("between", ())]
        for key, own in times(self.probes, self.bases, calls).items():
            if key in side.seconds:
                side.seconds[key] = less_calling(side.seconds[key], own)
        return side


class SideRounds:
    """The readings of one side. Keys from `end` on (0 if there are no graphs) are of what ran
    outside the graphs; None for a side that has neither."""

    def __init__(self, laps: Laps, end: int | None = None) -> None:
        self.laps = laps
        probed = laps["probed"]
        self.rounds = len(probed)
        self.seconds = by_key(lap.readings for lap in probed)
        """Key -> seconds of each round."""
        self.host = by_key(
            [Reading(one.key, one.start, one.host_ns) for one in lap.readings if one.host_ns]
            for lap in probed
        )
        """The same by the host's clock; empty if that is the only one."""
        self.seen: dict[int, list[Reading]] = {}
        """Key -> its readings in the first round."""
        self.first: dict[int, int] = {}
        """Key -> its first start in the call, by which keys are ordered."""
        for reading in probed[0].readings:
            self.seen.setdefault(reading.key, []).append(reading)
            self.first.setdefault(reading.key, reading.start - probed[0].start)
        laps_between = laps.get("between", probed)
        outside = end is not None
        self.between = in_rounds([lap.eager for lap in laps_between]) if outside else []
        """What ran outside the graphs, in order."""
        for key, rounds in enumerate(self.between, end or 0):
            self.seconds[key] = [ns / 1e9 for ns in rounds.ns]
            self.first[key] = rounds.run.start - laps_between[0].start
            if rounds.run.host_ns is not None:
                self.host[key] = [ns / 1e9 for ns in rounds.host_ns]

    @property
    def phases(self) -> list[CallPhase]:
        """In order; only "" outside training."""
        return list(self.laps["plain"][0].phases)

    def plain(self, phase: CallPhase) -> list[float]:
        """Seconds of a phase, or of the whole call (""), without probes, and without the time that
        the calling thread waited for a processor."""
        return [lap.running(phase) for lap in self.laps["plain"]]

    def probed(self, phase: CallPhase) -> list[float]:
        """The same under probes, including their waits and overhead."""
        return [lap.phases.get(phase, lap.seconds) for lap in self.laps["probed"]]

    def probed_running(self, phase: CallPhase) -> list[float]:
        """The same without the waits, for comparison with the plain call."""
        return [lap.running(phase) for lap in self.laps["probed"]]

    def busy(self, phase: CallPhase) -> list[float]:
        """Seconds in which the device worked, for each round."""
        return [lap.busy.get(phase, sum(lap.busy.values())) for lap in self.laps["probed"]]

    def typical(self) -> int:
        """The round whose time is the median, or nearest to it."""
        seconds = self.probed("")
        middle = median(seconds)
        return min(range(self.rounds), key=lambda i: abs(seconds[i] - middle))


def by_key(rounds: Iterable[Sequence[Reading]]) -> dict[int, list[float]]:
    """Key -> seconds in each round; 0 if a round has no reading."""
    found: dict[int, list[float]] = {}
    every = list(rounds)
    for number, readings in enumerate(every):
        for reading in readings:
            found.setdefault(reading.key, [0.0] * len(every))[number] += reading.ns / 1e9
    return found
