"""One run of a call, timed phase by phase, with everything that disturbed it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import attrgetter
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any, Literal

import torch

from tcw.compiler.measure.calls.runs import RunPiece
from tcw.compiler.measure.probes.between import EagerRun
from tcw.compiler.measure.probes.clock import Reading
from tcw.compiler.measure.probes.library_calls import LibraryCall
from tcw.compiler.measure.rounds.team import Team
from tcw.compiler.trace.records.profile import CallPhase

_PAGES = 64
"""The number of new pages that disturb as much as losing a processor: about ten microseconds."""

Side = Literal["eager", "compiled"]
LapKind = Literal["plain", "probed", "between"]
"""`plain`: without probes. `between`: the compiled call under torch's profiler, for what runs
outside graphs."""
During = Callable[[CallPhase, Any], AbstractContextManager[Any]]


@dataclass
class Lap:
    """One run, by the clock of the machine that it runs on."""

    phases: dict[CallPhase, float]
    """Seconds of each phase, in order."""
    start: int = 0
    """Nanoseconds, on the clock of `time.perf_counter_ns`."""
    readings: list[Reading] = field(default_factory=list)
    """The readings of a probe's clock."""
    took: float = 0.0
    """Seconds that a probe spent on its own work, outside all readings."""
    preempted: int = 0
    """How often the system took a processor from one of our threads."""
    waits: dict[CallPhase, float] = field(default_factory=dict)
    """Seconds of each phase in which the calling thread was ready to run, but had no processor."""
    kept_waiting: float = 0.0
    """The longest such time of any thread of the team."""
    faults: int = 0
    """Pages of memory that the system had to supply because the allocator had none to reuse."""
    events: int = 0
    """The number of events that torch's profiler recorded."""
    turn: int = 0
    """Runs of one turn follow each other, and share their disturbances."""
    bounds: tuple[int, ...] = ()
    """When each phase began, and when the last one ended, on the host's clock, in nanoseconds as in
    `start`."""
    eager: list[EagerRun] = field(default_factory=list)
    """The operations that torch's profiler saw outside graphs."""
    inside: list[LibraryCall] = field(default_factory=list)
    """The operations that it saw inside graphs."""
    busy: dict[CallPhase, float] = field(default_factory=dict)
    """Seconds in which the device worked for each phase."""

    @property
    def disturbed(self) -> int:
        """The amount of disturbance, by other programs and by pages that happened to be new."""
        return self.preempted + self.faults // _PAGES

    @property
    def seconds(self) -> float:
        return sum(self.phases.values())

    def running(self, phase: CallPhase = "") -> float:
        """Seconds of a phase, or of the whole call, without those in which the calling thread
        waited for a processor. (Time spent waiting for other threads that had no processor is
        included.)"""
        if phase in self.phases:
            return self.phases[phase] - self.waits.get(phase, 0.0)
        return self.seconds - sum(self.waits.values())


Laps = dict[LapKind, list[Lap]]
"""One lap per round."""
_SELECTED: tuple[tuple[LapKind, ...], ...] = (("plain",), ("probed", "between"))
"""Kinds of runs whose rounds are selected together."""
_LEAST, _ENOUGH = 7, 12
"""Rounds that are kept at least; undisturbed rounds from which on only these are kept."""


def quiet_rounds(sides: dict[Side, Laps]) -> dict[Side, Laps]:
    """The least disturbed rounds: the undisturbed ones if there are enough, else the less disturbed
    half. Nothing is selected by its time."""
    found: dict[Side, Laps] = {side: {} for side in sides}
    for kinds in _SELECTED:
        chosen = [(side, kind) for side, laps in sides.items() for kind in laps if kind in kinds]
        rounds = list(zip(*(sides[side][kind] for side, kind in chosen), strict=True))
        disturbed = [sum(lap.disturbed for lap in laps) for laps in rounds]
        if not disturbed:
            continue
        least = 1 if disturbed.count(0) >= _ENOUGH else max(_LEAST, len(disturbed) // 2)
        limit = sorted(disturbed)[min(least, len(disturbed)) - 1]
        for side, kind in chosen:
            pairs = zip(sides[side][kind], disturbed, strict=True)
            found[side][kind] = [lap for lap, count in pairs if count <= limit]
    return found


def subtract_profiler(sides: dict[Side, Laps]) -> None:
    """Subtract the cost of torch's profiler from the times of operations, and count the rest of it
    as the probe's own.

    An event costs four times as much in a model as in a loop over one operation, because each
    operation evicts from the nearest caches what the profiler needs next. So the cost is the extra
    time of the profiled call over the plain one, per event: calls of even turns use the cost from
    odd ones, and vice versa. The eager side determines it for both sides: it has the most events,
    and the sides' common operations are to be compared.
    """
    eager = [lap for lap in sides["eager"].get("probed", ()) if lap.events]
    for laps in sides.values():
        profiled = [lap for kind in _SELECTED[1] for lap in laps.get(kind, ()) if lap.events]
        if not profiled:
            continue
        known = (sides["eager"]["plain"], eager) if eager else (laps["plain"], profiled)
        costs = [event_cost(*known, other) for other in (1, 0)]
        for lap in profiled:
            seconds = costs[lap.turn % 2]
            lap.eager = [run.without(seconds * 1e9) for run in lap.eager]
            lap.inside = [call.without(seconds * 1e9) for call in lap.inside]
            lap.took += seconds * lap.events  # in operations, and around them


def event_cost(plain: Sequence[Lap], profiled: Sequence[Lap], parity: int) -> float:
    """Seconds per event, from the least disturbed calls of the odd or the even turns; of all if
    there are only odd or only even ones. Never negative."""
    apart = [[lap for lap in laps if lap.turn % 2 == parity] for laps in (plain, profiled)]
    before, after = (
        [lap for lap in laps if lap.disturbed == min(lap.disturbed for lap in laps)]
        for laps in (apart if all(apart) else (plain, profiled))
    )
    added = median(lap.running() for lap in after) - median(lap.running() for lap in before)
    return max(0.0, added / median(lap.events for lap in after))


def timed(
    pieces: Sequence[RunPiece],
    on_device: bool = False,
    during: During | None = None,
    team: Team | None = None,
) -> Lap:
    """Run the pieces and time each phase: by CUDA events if the work is on a GPU.

    `during` is entered around each piece; the times then mean little. `team`: the threads that may
    have to wait for a processor.
    """
    marks: list[Any] = []
    lap = Lap({})
    begun: list[int] = []
    ended = 0
    if on_device:
        torch.cuda.synchronize()
    watch = team.watch() if team is not None and not on_device else None
    before = getrusage(RUSAGE_SELF)
    lap.start = time.perf_counter_ns()
    if on_device:
        marks.append(_event())
    for phase, group in groupby(pieces, key=attrgetter("phase")):
        begun.append(time.perf_counter_ns())
        for piece in group:
            if during is None:
                piece.action()
            else:
                with during(piece.phase, piece.part):
                    piece.action()
        if on_device:
            marks.append(_event())
        ended = time.perf_counter_ns()
        lap.phases[phase] = (ended - begun[-1]) / 1e9
        if watch is not None:
            lap.waits[phase] = watch.caller(begun[-1], ended)
    lap.bounds = (*begun, ended)
    if on_device:
        torch.cuda.synchronize()
        seconds = [a.elapsed_time(b) / 1e3 for a, b in pairwise(marks)]
        lap.phases = dict(zip(lap.phases, seconds, strict=True))
    after = getrusage(RUSAGE_SELF)
    lap.preempted = after.ru_nivcsw - before.ru_nivcsw
    lap.faults = after.ru_minflt - before.ru_minflt
    if watch is not None:
        lap.kept_waiting = watch.longest()
    return lap


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
