"""The rounds of a profile: both sides plain and under probes, in turn, each from fresh inputs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

import torch

from compiler.measure.probes.clock import Clock, Reading
from compiler.trace.records.profile import CallPhase
from workbench.worker.runs import Piece, PreparedRun, RandomState, grad_mode

SECONDS = 10.0
"""Time budget of all rounds …"""
LEAST = 7
"""… in which so many are made even beyond it …"""
PATIENCE = 60.0
"""… unless they take longer than this; then at least three."""

Side = Literal["eager", "compiled"]
During = Callable[[CallPhase, Any], AbstractContextManager[None]]


@dataclass
class Lap:
    """One run, by the clock of the machine that it runs on."""

    phases: dict[CallPhase, float]
    """Seconds of each, in order."""
    start: int = 0
    """Nanoseconds, on the clock of `time.perf_counter_ns`."""
    readings: list[Reading] = field(default_factory=list)
    """What a probe's clock read in it."""

    @property
    def seconds(self) -> float:
        return sum(self.phases.values())


@dataclass
class Laps:
    """Of each round one, both plain and probed."""

    plain: list[Lap] = field(default_factory=list)
    probed: list[Lap] = field(default_factory=list)

    def phases(self) -> list[CallPhase]:
        """In order; one ("") outside of training."""
        return list(self.plain[0].phases) if self.plain else []


@dataclass
class Looked:
    """How a side is probed in one round."""

    clock: Clock
    during: During | None = None


Probe = Callable[[], AbstractContextManager[Looked]]
"""Entered around one run; the clock is read after it."""


@dataclass
class Contender:
    """One side of a call."""

    prepare: Callable[[], PreparedRun]
    pieces: Callable[[PreparedRun], list[Piece]]
    probe: Probe
    rewind: Callable[[], None] = lambda: None
    """Before each run, untimed: puts back what the last one changed."""


class Rounds:
    """Runs both sides, plain and probed, as often as there is time for."""

    def __init__(self, sides: dict[Side, Contender], on_device: bool = False) -> None:
        self.sides = sides
        self.on_device = on_device
        self.generators = RandomState.now()
        self.laps: dict[Side, Laps] = {side: Laps() for side in sides}

    def warm_up(self, runs: int = 2) -> None:
        """Plain runs, then one under each probe, which may build what it needs."""
        for side in self.sides:
            for _ in range(runs):
                self._run(side, probed=False)
            self._run(side, probed=True)
        for side in self.sides:
            self._run(side, probed=False)

    def run(
        self, rounds: int, seconds: float = SECONDS, told: Callable[[int], None] = lambda _: None
    ) -> None:
        """All rounds. The order turns from round to round; garbage collection is off."""
        order = [(side, probed) for probed in (False, True) for side in self.sides]
        collecting = gc.isenabled()
        gc.collect()
        gc.disable()
        began = time.perf_counter()
        try:
            for done in range(rounds):
                spent = time.perf_counter() - began
                if (done >= LEAST and spent > seconds) or (done >= 3 and spent > PATIENCE):
                    break
                told(done)
                turned = order[done % len(order) :] + order[: done % len(order)]
                for side, probed in reversed(turned) if done % 2 else turned:
                    laps = self.laps[side]
                    (laps.probed if probed else laps.plain).append(self._run(side, probed))
        finally:
            if collecting:
                gc.enable()

    def _run(self, side: Side, probed: bool) -> Lap:
        contender = self.sides[side]
        contender.rewind()
        run = contender.prepare()
        pieces = contender.pieces(run)
        self.generators.restore()
        with grad_mode(run.mode):
            if not probed:
                return timed(pieces, self.on_device)
            with ExitStack() as stack:
                looked = stack.enter_context(contender.probe())
                lap = timed(pieces, self.on_device, looked.during)
            lap.readings = looked.clock.readings()
            return lap


def timed(pieces: Sequence[Piece], on_device: bool = False, during: During | None = None) -> Lap:
    """Run the pieces and time each phase: by CUDA's events where the work is on a GPU."""
    marks: list[Any] = []
    phases: list[CallPhase] = []
    around = during or _alone
    if on_device:
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        marks.append(_event())
    else:
        start = time.perf_counter_ns()
        marks.append(start)
    for phase, group in groupby(pieces, key=_phase):
        for piece in group:
            if during is None:
                piece.action()
            else:
                with around(piece.phase, piece.part):
                    piece.action()
        marks.append(_event() if on_device else time.perf_counter_ns())
        phases.append(phase)
    if on_device:
        torch.cuda.synchronize()
        seconds = [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:], strict=False)]
    else:
        seconds = [(b - a) / 1e9 for a, b in zip(marks, marks[1:], strict=False)]
    return Lap(dict(zip(phases, seconds, strict=True)), start)


def _phase(piece: Piece) -> CallPhase:
    return piece.phase


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _alone(phase: CallPhase, part: Any) -> AbstractContextManager[None]:
    return nullcontext()


@contextmanager
def looking(clock: Clock, entered: Sequence[AbstractContextManager[Any]]) -> Iterator[Looked]:
    """Probes that read into one clock."""
    with ExitStack() as stack:
        for one in entered:
            stack.enter_context(one)
        yield Looked(clock)
