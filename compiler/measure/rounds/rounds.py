"""The rounds of a profile: both sides plain and under probes, in turn, each from fresh inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from resource import RUSAGE_SELF, getrusage
from typing import Any, Literal

import torch

from compiler.measure.calls.runs import Piece, PreparedRun, RandomState, grad_mode
from compiler.measure.probes.between import EagerRun, outside
from compiler.measure.probes.clock import Clock, HostClock, Reading
from compiler.measure.probes.device_clock import DeviceClock
from compiler.measure.probes.library_calls import LibraryCall, inside
from compiler.measure.rounds.speed import no_collection
from compiler.measure.rounds.team import Team
from compiler.trace.records.profile import CallPhase

SECONDS = 10.0
"""Time budget of all rounds …"""
BUSY_SECONDS = 25.0
"""… where others use the processors, and a call takes a multiple of its time …"""
LEAST = 7
"""… in which so many are made even beyond it …"""
PATIENCE = 60.0
"""… unless they take longer than this; then at least three."""
_PAGES = 64
"""New pages that disturb as much as the loss of a processor: some ten microseconds."""
SHORT = 0.02
"""Seconds: a call that takes less is made once, untimed, before those that are timed and under the
same probe, so that none of them finds caches as starting or reading a profile has left them."""
TOGETHER, MOST_TOGETHER = 0.1, 6
"""Runs of one kind follow each other for so many seconds, and at most so many: starting and reading
torch's profiler takes as long as many short calls. Each counts for itself."""
DISTURBED = 4
"""At most so many times the rounds that are asked for are made, where some are disturbed."""
FEW = 3
"""So many undisturbed runs of one kind say more than any number of others …"""
ENOUGH = 12
"""… and so many undisturbed rounds; of fewer, the less disturbed half is added."""

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
    waits: dict[CallPhase, float] = field(default_factory=dict)
    """Seconds of each phase in which the calling thread was ready, and had no processor."""
    kept_waiting: float = 0.0
    """The longest that any thread of the team was so."""
    faults: int = 0
    """Pages of memory that the system had to give, as the allocator had none of that size."""
    events: int = 0
    """That torch's profiler wrote in it."""
    round: int = 0
    """Runs of one number follow each other, and share what disturbs them."""
    bounds: tuple[int, ...] = ()
    """When each phase began, and the last one ended, on the host: nanoseconds as `start`."""
    eager: list[EagerRun] = field(default_factory=list)
    """What torch's profiler saw outside of graphs …"""
    inside: list[LibraryCall] = field(default_factory=list)
    """… and what of operations inside of them."""
    busy: dict[CallPhase, float] = field(default_factory=dict)
    """Seconds in which the device worked for each phase."""

    @property
    def disturbed(self) -> int:
        """How much: by other programs, and by pages that were new by chance."""
        return self.preempted + self.faults // _PAGES

    @property
    def seconds(self) -> float:
        return sum(self.phases.values())

    def running(self, phase: CallPhase = "") -> float:
        """Seconds of a phase, or of the whole call, less those in which the calling thread waited
        for a processor. (What it waited for other threads without one is still in them.)"""
        if phase in self.phases:
            return self.phases[phase] - self.waits.get(phase, 0.0)
        return self.seconds - sum(self.waits.values())


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

    def clocks(self) -> list[HostClock | DeviceClock]:
        """That are told where each call begins and ends."""
        every = {id(one): one for one in (self.clock, self.profile)}
        return [one for one in every.values() if isinstance(one, (HostClock, DeviceClock))]


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

    def __init__(self, sides: dict[Side, Contender], team: Team, on_device: bool = False) -> None:
        self.sides = sides
        self.on_device = on_device
        self.generators = RandomState.now()
        self.team = team
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
            done = turns = 0
            while done < DISTURBED * rounds:
                spent = time.perf_counter() - began
                budget = max(seconds, BUSY_SECONDS) if self.team.contended else seconds
                if (done >= LEAST and spent > budget) or (done >= 3 and spent > PATIENCE):
                    break
                if done >= rounds and self._undisturbed(order) >= rounds:
                    break
                told(done)
                count = min(self._in_a_row(), DISTURBED * rounds - done)
                place = turns % len(order)
                turned = [*order[place:], *order[:place]]
                for side, way in reversed(turned) if turns % 2 else turned:
                    made = self._runs(side, way, count)
                    self.laps[side][way] += [replace(lap, round=turns) for lap in made]
                done, turns = done + count, turns + 1

    def _in_a_row(self) -> int:
        """So many rounds are made at a time: run by run of one kind, where that takes no time."""
        if self.on_device:
            return 1
        longest = max((laps["plain"][0].seconds for laps in self.laps.values() if laps["plain"]),
                      default=TOGETHER)  # fmt: skip
        return max(1, min(MOST_TOGETHER, int(TOGETHER / longest)))

    def forget_library_calls(self) -> None:
        """Where the eager side is not timed by torch's profiler, its clock is around calls, too."""
        for laps in self.laps["compiled"].values():
            for lap in laps:
                lap.inside = []

    def _undisturbed(self, order: Sequence[tuple[Side, Way]]) -> int:
        """Rounds in which nobody took the processor from any run."""
        every = [self.laps[side][way] for side, way in order]
        return sum(not any(lap.preempted for lap in one) for one in zip(*every, strict=True))

    def _run(self, side: Side, way: Way) -> Lap:
        return self._runs(side, way, 1)[0]

    def _runs(self, side: Side, way: Way, count: int) -> list[Lap]:
        """So many runs in a row under one probe."""
        found: list[Lap] = []
        with ExitStack() as stack:
            looked = Looked()
            if way != "plain":
                looked = stack.enter_context(self.sides[side].probes[way]())
            if self._short(side):
                self._timed(side, looked)
            for _ in range(count):
                found.append(self._timed(side, looked))
        self._read(found, looked)
        if not self.on_device:
            waited = sum(lap.kept_waiting for lap in found)
            self.team.tell(sum(lap.seconds for lap in found), waited)
        return found

    def _short(self, side: Side) -> bool:
        laps = self.laps[side]["plain"]
        return bool(laps) and laps[0].seconds < SHORT

    def _timed(self, side: Side, looked: Looked) -> Lap:
        run, pieces = self._prepared(side)
        clocks = looked.clocks()
        with grad_mode(run.mode):
            for clock in clocks:
                clock.begin()
            with looked.around():
                lap = timed(pieces, self.on_device, looked.during, self.team)
            for clock in clocks:
                clock.end()
        return lap

    def _read(self, laps: Sequence[Lap], looked: Looked) -> None:
        """Give each call what was seen of it."""
        if isinstance(looked.clock, HostClock):
            for lap, noted in zip(laps, looked.clock.calls[-len(laps) :], strict=True):
                lap.readings = noted.readings()
                lap.took = noted.took_ns / 1e9
        elif looked.clock is not None:
            laps[-1].readings = looked.clock.readings()
        if looked.profile is None:
            return
        for lap, trace in zip(laps, looked.profile.calls[-len(laps) :], strict=True):
            lap.events = sum(1 for _ in trace.events())
            if looked.between:
                lap.eager = outside(trace, self.on_device)
                lap.inside = [] if self.on_device else inside(trace)
            if self.on_device:
                for phase, (since, until) in zip(lap.phases, pairwise(lap.bounds), strict=True):
                    lap.busy[phase] = trace.busy_ns(since, until) / 1e9

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
    which nothing was, where there are `ENOUGH`, else the half that was disturbed least. Plain runs
    are compared with plain ones alone, and what probes read with what probes read."""
    found: dict[Side, Laps] = {side: {} for side in sides}
    for together in (("plain",), ("probed", "between")):
        chosen = {
            (side, way): of_side[way]
            for side, of_side in sides.items()
            for way in of_side
            if way in together
        }
        rounds = list(zip(*chosen.values(), strict=True))
        disturbed = [sum(lap.disturbed for lap in one) for one in rounds]
        if not disturbed:
            continue
        least = 1 if disturbed.count(0) >= ENOUGH else max(LEAST, len(disturbed) // 2)
        kept = _lowest(disturbed, least)
        for (side, way), laps in chosen.items():
            found[side][way] = [laps[number] for number in kept]
    return found


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


def timed(
    pieces: Sequence[Piece],
    on_device: bool = False,
    during: During | None = None,
    team: Team | None = None,
) -> Lap:
    """Run the pieces and time each phase: by CUDA's events where the work is on a GPU.

    `during` is entered around each piece; then the times say little. `team`: the threads that may
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
    for phase, group in groupby(pieces, key=_phase):
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
            lap.waits[phase] = watch.caller()
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


def _phase(piece: Piece) -> CallPhase:
    return piece.phase


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
