"""The rounds of a profile: both sides plain and under probes, in turn, each from fresh inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from tcw.compiler.measure.calls.runs import RandomState, RunPiece, grad_mode
from tcw.compiler.measure.probes.between import outside
from tcw.compiler.measure.probes.clock import Clock, HostClock
from tcw.compiler.measure.probes.device_clock import DeviceClock
from tcw.compiler.measure.probes.laps import During, Lap, LapKind, Laps, Side, timed
from tcw.compiler.measure.probes.library_calls import inside
from tcw.compiler.measure.rounds.rounds import RoundsPlan, in_rounds, warm_up
from tcw.compiler.measure.rounds.team import Team
from tcw.compiler.trace.records.session import GradMode

SHORT = 0.02
"""Seconds. A shorter call is first made once, untimed, under the same probe, so that no timed call
finds the caches as starting or reading a profile has left them."""
TOGETHER, MOST_TOGETHER = 0.1, 6
"""Runs of one kind follow each other for at most this many seconds, and this many times: starting
and reading torch's profiler takes as long as many short calls. Each run counts individually."""
_WAYS: tuple[LapKind, ...] = ("plain", "probed", "between")


def plan_of(rounds: int) -> RoundsPlan:
    """A plan for this many undisturbed rounds of a call."""
    return RoundsPlan(rounds, seconds=10.0, least=7, patience=60.0, extension=4)


@dataclass
class Probing:
    """How a run is probed."""

    clock: Clock | None = None
    profile: DeviceClock | None = None
    """Set for a run under torch's profiler."""
    between: bool = False
    """Graphs are marked in that profile, so what runs outside them can be separated."""
    during: During | None = None
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around each call, but not around its preparation."""

    def clocks(self) -> list[HostClock | DeviceClock]:
        """The clocks that are notified when each call begins and ends."""
        every = {id(clock): clock for clock in (self.clock, self.profile)}
        return [clock for clock in every.values() if isinstance(clock, (HostClock, DeviceClock))]


Probe = Callable[[], AbstractContextManager[Probing]]
"""Entered around one run; the clocks are read after it."""


class InPieces(Protocol):
    """A prepared run that is measured piece by piece."""

    @property
    def mode(self) -> GradMode: ...

    def pieces(self) -> list[RunPiece]: ...


@dataclass
class CallSide:
    """One side of a call."""

    prepare: Callable[[], InPieces]
    probes: dict[LapKind, Probe]
    rewind: Callable[[], None] = lambda: None
    """Before each run, untimed: undoes the changes of the last one."""


class CallRounds:
    """Runs both sides, plain and probed, as often as time allows."""

    def __init__(
        self,
        sides: dict[Side, CallSide],
        team: Team,
        on_device: bool = False,
        in_a_row: int = MOST_TOGETHER,
    ) -> None:
        """`in_a_row`: the maximum number of consecutive runs of one kind."""
        self.sides = sides
        self.on_device = on_device
        self.most_in_a_row = 1 if on_device else in_a_row
        self.generators = RandomState.now()
        self.team = team
        self.laps: dict[Side, Laps] = {
            side: {"plain": [], **{way: [] for way in call_side.probes}}
            for side, call_side in sides.items()
        }

    def warm_up(self) -> dict[tuple[Side, LapKind], Lap]:
        """Plain runs, then one under each probe, which may build what it needs. Returns the last
        of each."""
        runs = [(side, way) for side, laps in self.laps.items() for way in laps]
        plain = [run for run in runs if run[1] == "plain"]
        probed = [run for run in runs if run[1] != "plain"]
        laps = [*warm_up(plain, self._run), *warm_up(probed, self._run, times=1)]
        return dict(zip((*plain, *probed), laps, strict=True))

    def leave_out_between(self) -> None:
        """Make no more runs that read what runs between the graphs."""
        self.laps["compiled"].pop("between", None)

    def plain_first(
        self, plan: RoundsPlan, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        """Make the plain rounds now, before torch's profiler is started for the first time: what it
        installs stays, and makes every later launch of a kernel slower."""
        plain: list[tuple[Side, LapKind]] = [(side, "plain") for side in self.laps]
        warm_up(plain, self._run)
        self._repeat(plain, plan, progress)

    def run(self, plan: RoundsPlan, progress: Callable[[int], None] = lambda _: None) -> None:
        """Make the planned rounds; if the plain rounds have been made already, as many as those."""
        apart = any(laps["plain"] for laps in self.laps.values())
        ways = [way for way in _WAYS if not (apart and way == "plain")]
        self._repeat(
            [(side, way) for way in ways for side in self.laps if way in self.laps[side]],
            plan,
            progress,
        )
        counts = [len(laps) for of_side in self.laps.values() for laps in of_side.values()]
        for of_side in self.laps.values():
            for laps in of_side.values():
                del laps[min(counts) :]

    def _repeat(
        self,
        runs: Sequence[tuple[Side, LapKind]],
        plan: RoundsPlan,
        progress: Callable[[int], None],
    ) -> None:
        def make(run: tuple[Side, LapKind], turn: int, count: int) -> None:
            side, way = run
            self.laps[side][way] += [replace(lap, turn=turn) for lap in self._runs(run, count)]

        in_rounds(
            [runs],
            make,
            plan,
            in_a_row=self._in_a_row,
            undisturbed=lambda: self._undisturbed(runs),
            progress=progress,
        )

    def _in_a_row(self) -> int:
        """The number of rounds in one turn: several for short calls, run by run of one kind."""
        plain = [laps["plain"][0].seconds for laps in self.laps.values() if laps["plain"]]
        longest = max(plain, default=TOGETHER)
        return max(1, min(self.most_in_a_row, int(TOGETHER / longest)))

    def forget_library_calls(self) -> None:
        """Drop the profiler's times of library calls: if torch's profiler does not time the eager
        side, the clock on that side includes the overhead of calls too."""
        for laps in self.laps["compiled"].values():
            for lap in laps:
                lap.inside = []

    def _undisturbed(self, runs: Sequence[tuple[Side, LapKind]]) -> int:
        """The number of rounds in which no run lost a processor."""
        every = [self.laps[side][way] for side, way in runs]
        return sum(not any(lap.preempted for lap in one) for one in zip(*every, strict=True))

    def _run(self, run: tuple[Side, LapKind]) -> Lap:
        return self._runs(run, 1)[0]

    def _runs(self, run: tuple[Side, LapKind], count: int) -> list[Lap]:
        """This many consecutive runs under one probe."""
        side, way = run
        laps: list[Lap] = []
        with ExitStack() as stack:
            probing = Probing()
            if way != "plain":
                probing = stack.enter_context(self.sides[side].probes[way]())
            if self._short(side):
                self._timed(side, probing)
            for _ in range(count):
                laps.append(self._timed(side, probing))
        self._read(laps, probing)
        if not self.on_device:
            waited = sum(lap.kept_waiting for lap in laps)
            self.team.note(sum(lap.seconds for lap in laps), waited)
        return laps

    def _short(self, side: Side) -> bool:
        laps = self.laps[side]["plain"]
        return bool(laps) and laps[0].seconds < SHORT

    def _timed(self, side: Side, probing: Probing) -> Lap:
        call_side = self.sides[side]
        call_side.rewind()
        run = call_side.prepare()
        pieces = run.pieces()
        self.generators.restore()
        clocks = probing.clocks()
        with grad_mode(run.mode):
            for clock in clocks:
                clock.begin()
            with probing.around():
                lap = timed(pieces, self.on_device, probing.during, self.team)
            for clock in clocks:
                clock.end()
        return lap

    def _read(self, laps: Sequence[Lap], probing: Probing) -> None:
        """Store in each lap what its clocks and profile recorded."""
        if isinstance(probing.clock, HostClock):
            for lap, noted in zip(laps, probing.clock.calls[-len(laps) :], strict=True):
                lap.readings = noted.readings()
                lap.took = noted.took_ns / 1e9
        elif probing.clock is not None:
            laps[-1].readings = probing.clock.readings()
        if probing.profile is None:
            return
        for lap, trace in zip(laps, probing.profile.calls[-len(laps) :], strict=True):
            lap.events = sum(1 for _ in trace.events())
            if probing.between:
                lap.eager = outside(trace, self.on_device)
                lap.inside = [] if self.on_device else inside(trace)
            if self.on_device:
                for phase, (since, until) in zip(lap.phases, pairwise(lap.bounds), strict=True):
                    lap.busy[phase] = trace.busy_ns(since, until) / 1e9
