"""The rounds of a profile: both sides plain and under probes, in turn, each from fresh inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from resource import RUSAGE_SELF, getrusage
from typing import Any, Literal

import torch

from compiler.measure.probes.between import EagerRun, outside
from compiler.measure.probes.clock import Clock, HostClock, Reading
from compiler.measure.probes.device_clock import DeviceClock, event_ns
from compiler.measure.speed import no_collection
from compiler.trace.records.profile import CallPhase
from workbench.worker.runs import Piece, PreparedRun, RandomState, grad_mode

SECONDS = 10.0
"""Time budget of all rounds …"""
LEAST = 7
"""… in which so many are made even beyond it …"""
PATIENCE = 60.0
"""… unless they take longer than this; then at least three."""
_PAGES = 64
"""New pages that disturb as much as the loss of a processor: some ten microseconds."""
SHORT = 0.02
"""Seconds: a call that takes less is made once, untimed, before each timed one and under the same
probe, so that none of them finds caches as starting or reading a profile has left them."""
DISTURBED = 4
"""At most so many times the rounds that are asked for are made, where some are disturbed."""
FEW = 3
"""So many undisturbed runs say more than any number of others."""

Side = Literal["eager", "compiled"]
Way = Literal["plain", "probed", "between"]
"""`plain`: nothing of ours is in it. `between`: the compiled call under torch's profiler, for what
runs outside of graphs."""
During = Callable[[CallPhase, Any], AbstractContextManager[Any]]


@dataclass
class Lap:
    """One run, by the clock of the machine that it runs on."""

    phases: dict[CallPhase, float]
    """Seconds of each, in order."""
    start: int = 0
    """Nanoseconds, on the clock of `time.perf_counter_ns`."""
    readings: list[Reading] = field(default_factory=list)
    """What a probe's clock read in it."""
    took: float = 0.0
    """Seconds that a probe spent in it on its own account, outside of all readings."""
    preempted: int = 0
    """How often the system took a processor from one of our threads."""
    faults: int = 0
    """Pages of memory that the system had to give, as the allocator had none of that size."""
    bounds: tuple[int, ...] = ()
    """When each phase began, and the last one ended, on the host: nanoseconds as `start`."""
    eager: list[EagerRun] = field(default_factory=list)
    """What torch's profiler saw outside of graphs."""
    busy: dict[CallPhase, float] = field(default_factory=dict)
    """Seconds in which the device worked for each phase."""

    @property
    def disturbed(self) -> int:
        """How much: by other programs, and by pages that were new by chance."""
        return self.preempted + self.faults // _PAGES

    @property
    def seconds(self) -> float:
        return sum(self.phases.values())


Laps = dict[Way, list[Lap]]
"""Of each round one."""


@dataclass
class Looked:
    """How a run is probed."""

    clock: Clock | None = None
    profile: DeviceClock | None = None
    """Of a run under torch's profiler."""
    between: bool = False
    """Graphs are marked in that profile: what is outside of them can be told."""
    during: During | None = None
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around each call, and not around what prepares it."""


Probe = Callable[[], AbstractContextManager[Looked]]
"""Entered around one run; the clocks are read after it."""


@dataclass
class Contender:
    """One side of a call."""

    prepare: Callable[[], PreparedRun]
    pieces: Callable[[PreparedRun], list[Piece]]
    probes: dict[Way, Probe]
    rewind: Callable[[], None] = lambda: None
    """Before each run, untimed: puts back what the last one changed."""


class Rounds:
    """Runs both sides, plain and probed, as often as there is time for."""

    def __init__(self, sides: dict[Side, Contender], on_device: bool = False) -> None:
        self.sides = sides
        self.on_device = on_device
        self.generators = RandomState.now()
        self.laps: dict[Side, Laps] = {
            side: {"plain": [], **{way: [] for way in one.probes}} for side, one in sides.items()
        }

    def warm_up(self, runs: int = 2) -> dict[tuple[Side, Way], Lap]:
        """Plain runs, then one under each probe, which may build what it needs. Answers the last
        of each."""
        return {
            (side, way): [self._run(side, way) for _ in range(runs if way == "plain" else 1)][-1]
            for side, laps in self.laps.items()
            for way in laps
        }

    def leave_out(self, side: Side, way: Way) -> None:
        """Make no more runs of this kind."""
        self.laps[side].pop(way, None)

    def plain_first(
        self, rounds: int, seconds: float = SECONDS, told: Callable[[int], None] = lambda _: None
    ) -> None:
        """Make the plain rounds now, before torch's profiler is started for the first time: what
        it installs stays, and each launch of a kernel takes longer from then on."""
        for _ in range(2):
            for side in self.laps:
                self._run(side, "plain")
        self._repeat([(side, "plain") for side in self.laps], rounds, seconds, told)

    def run(
        self, rounds: int, seconds: float = SECONDS, told: Callable[[int], None] = lambda _: None
    ) -> None:
        """As many undisturbed rounds as asked for, as long as there is time. The order turns from
        round to round; garbage collection is off. Where the plain rounds are there already, as
        many as those."""
        apart = any(laps["plain"] for laps in self.laps.values())
        ways = [way for way in _WAYS if not (apart and way == "plain")]
        order = [(side, way) for way in ways for side in self.laps if way in self.laps[side]]
        self._repeat(order, rounds, seconds, told)
        counts = [len(laps) for of_side in self.laps.values() for laps in of_side.values()]
        for of_side in self.laps.values():
            for laps in of_side.values():
                del laps[min(counts) :]

    def _repeat(
        self,
        order: Sequence[tuple[Side, Way]],
        rounds: int,
        seconds: float,
        told: Callable[[int], None],
    ) -> None:
        with no_collection():
            began = time.perf_counter()
            for done in range(DISTURBED * rounds):
                spent = time.perf_counter() - began
                if (done >= LEAST and spent > seconds) or (done >= 3 and spent > PATIENCE):
                    break
                if done >= rounds and self._undisturbed(order) >= rounds:
                    break
                told(done)
                turned = [*order[done % len(order) :], *order[: done % len(order)]]
                for side, way in reversed(turned) if done % 2 else turned:
                    self.laps[side][way].append(self._run(side, way))

    def _undisturbed(self, order: Sequence[tuple[Side, Way]]) -> int:
        """Rounds in which nobody took the processor from any run."""
        every = [self.laps[side][way] for side, way in order]
        return sum(not any(lap.preempted for lap in one) for one in zip(*every, strict=True))

    def _run(self, side: Side, way: Way) -> Lap:
        laps = self.laps[side]["plain"]
        short = bool(laps) and laps[0].seconds < SHORT
        with ExitStack() as stack:
            looked = Looked()
            if way != "plain":
                looked = stack.enter_context(self.sides[side].probes[way]())
            for timed_one in (False, True) if short else (True,):
                run, pieces = self._prepared(side)
                with grad_mode(run.mode):
                    if timed_one and short:
                        for clock in (looked.clock, looked.profile):
                            if isinstance(clock, (HostClock, DeviceClock)):
                                clock.forget()
                    with looked.around():
                        lap = timed(pieces, self.on_device, looked.during)
        lap.readings = looked.clock.readings() if looked.clock is not None else []
        if isinstance(looked.clock, HostClock):
            lap.took = looked.clock.took_ns / 1e9
        if looked.profile is not None and looked.between:
            each = 0.0 if self.on_device else event_ns()
            lap.eager = outside(looked.profile.trace, self.on_device, event_ns=each)
            own = sum(1 for _ in looked.profile.trace.events()) - sum(r.events for r in lap.eager)
            lap.took += own * each / 1e9
        if looked.profile is not None and self.on_device:
            for phase, (since, until) in zip(lap.phases, pairwise(lap.bounds), strict=True):
                lap.busy[phase] = looked.profile.busy_ns(since, until) / 1e9
        return lap

    def _prepared(self, side: Side) -> tuple[PreparedRun, list[Piece]]:
        contender = self.sides[side]
        contender.rewind()
        run = contender.prepare()
        pieces = contender.pieces(run)
        self.generators.restore()
        return run, pieces


_WAYS: tuple[Way, ...] = ("plain", "probed", "between")


def quiet_rounds(sides: dict[Side, Laps]) -> dict[Side, Laps]:
    """Without the rounds that were disturbed most, for what is compared round by round: those in
    which nothing was, where there are a `FEW`, else the best `LEAST`."""
    laps = [of_way for side in sides.values() for of_way in side.values()]
    disturbed = [sum(lap.disturbed for lap in one) for one in zip(*laps, strict=True)]
    kept = _lowest(disturbed, FEW if disturbed.count(0) >= FEW else LEAST)
    return {
        side: {way: [of_way[number] for number in kept] for way, of_way in found.items()}
        for side, found in sides.items()
    }


def quiet_laps(laps: Laps) -> Laps:
    """The least disturbed runs of each way, for what is summed up: a `FEW` at least."""
    return {
        way: [found[number] for number in _lowest([lap.disturbed for lap in found], FEW)]
        for way, found in laps.items()
    }


def _lowest(disturbed: Sequence[int], least: int) -> list[int]:
    """Places of so many of the lowest numbers, and of all that are as low as they.

    The system takes a processor from a thread to give it to another program, and gives pages of
    memory where the allocator, by what it did before, has none to use again; it says how often.
    What is kept is not chosen by its time.
    """
    limit = sorted(disturbed)[min(least, len(disturbed)) - 1]
    return [number for number, count in enumerate(disturbed) if count <= limit]


def timed(pieces: Sequence[Piece], on_device: bool = False, during: During | None = None) -> Lap:
    """Run the pieces and time each phase: by CUDA's events where the work is on a GPU.

    `during` is entered around each piece; then the times say little.
    """
    marks: list[Any] = []
    phases: list[CallPhase] = []
    if on_device:
        torch.cuda.synchronize()
    before = getrusage(RUSAGE_SELF)
    start = time.perf_counter_ns()
    bounds = [start]
    if on_device:
        marks.append(_event())
    for phase, group in groupby(pieces, key=_phase):
        for piece in group:
            if during is None:
                piece.action()
            else:
                with during(piece.phase, piece.part):
                    piece.action()
        if on_device:
            marks.append(_event())
        bounds.append(time.perf_counter_ns())
        phases.append(phase)
    if on_device:
        torch.cuda.synchronize()
        seconds = [a.elapsed_time(b) / 1e3 for a, b in pairwise(marks)]
    else:
        seconds = [(b - a) / 1e9 for a, b in pairwise(bounds)]
    after = getrusage(RUSAGE_SELF)
    return Lap(
        dict(zip(phases, seconds, strict=True)),
        start,
        preempted=after.ru_nivcsw - before.ru_nivcsw,
        faults=after.ru_minflt - before.ru_minflt,
        bounds=tuple(bounds),
    )


def _phase(piece: Piece) -> CallPhase:
    return piece.phase


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
