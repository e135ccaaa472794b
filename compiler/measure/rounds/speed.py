"""Eager against compiled for the whole model, side by side in one process.

Both run in the same rounds, with the other engine's result if two engines are compared. The times
are summarised by medians and median absolute deviations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import torch

from compiler.measure.calls.runs import Prepare
from compiler.measure.rounds.noise import mean_round, ratio, spread
from compiler.measure.rounds.rounds import RoundsPlan
from compiler.measure.rounds.whole_runs import seconds_in_rounds
from compiler.trace.records import EngineSpeed, SetSpeed, Speed

PLAN = RoundsPlan(rounds=60, seconds=3.0, least=10, patience=30.0)


@dataclass
class Contender:
    """One input set: `eager()`, `compiled()` and `rival()` each prepare a run, untimed, and return
    it."""

    call: int
    eager: Prepare
    compiled: Prepare
    rival: Prepare | None = None
    """The same model, compiled by the other engine."""

    def runs(self) -> list[Prepare]:
        return [self.eager, self.compiled, *([self.rival] if self.rival is not None else [])]


def cpu_of(prepare: Prepare) -> float:
    """CPU seconds of this process for one warm run."""
    run = prepare()
    start = time.process_time()
    run()
    return time.process_time() - start


@dataclass
class Times:
    """Seconds, one entry per round."""

    eager: list[float] = field(default_factory=list)
    compiled: list[float] = field(default_factory=list)
    rival: list[float] = field(default_factory=list)

    def of_rival(self) -> Times:
        """Eager against the other engine."""
        return Times(self.eager, self.rival)


def measure(
    contenders: Sequence[Contender],
    plan: RoundsPlan = PLAN,
    warmed: Callable[[], None] = lambda: None,
) -> list[Times]:
    """Time every contender in each round. `warmed` is called between the warm-up and the first
    round."""
    found = seconds_in_rounds([contender.runs() for contender in contenders], plan, warmed)
    return [Times(*seconds) for seconds in found]


def summarise(
    contenders: Sequence[Contender],
    times: Sequence[Times],
    first_calls: Sequence[tuple[float, int]],
    cpu_seconds: float | None,
    what: str,
    device: str = "",
    peaks: tuple[int | None, int | None] = (None, None),
    compiled_again: int = 0,
) -> Speed:
    """The record. A round's time is the mean over its input sets, so times are per call.

    `first_calls` has, for each recorded call, its wall seconds and the index of the contender that
    stands for it. `cpu_seconds`: the CPU seconds that these calls took beyond running. `peaks`:
    bytes of eager and compiled. `compiled_again`: graphs compiled during the rounds.
    """
    eager = mean_round([found.eager for found in times])
    compiled = mean_round([found.compiled for found in times])
    speedup, noise = ratio(eager, compiled)
    running = [median(found.compiled) for found in times]
    beyond = sum(max(0.0, seconds - running[index]) for seconds, index in first_calls)
    return Speed(
        eager_ms=median(eager) * 1e3,
        compiled_ms=median(compiled) * 1e3,
        eager_mad_ms=spread(eager) * 1e3,
        compiled_mad_ms=spread(compiled) * 1e3,
        speedup=speedup,
        noise=noise,
        pairs=len(eager),
        in_noise=abs(speedup - 1) <= noise * speedup,
        compile_seconds=beyond,
        compile_cpu_seconds=cpu_seconds,
        sets=tuple(
            SetSpeed(
                call=contender.call,
                eager_ms=median(found.eager) * 1e3,
                compiled_ms=median(found.compiled) * 1e3,
                pairs=len(found.eager),
            )
            for contender, found in zip(contenders, times, strict=True)
        ),
        threads=torch.get_num_threads(),
        what=what,
        device=device,
        eager_peak_bytes=peaks[0],
        compiled_peak_bytes=peaks[1],
        compiled_again=compiled_again,
    )


def compare(times: Sequence[Times], first: str, second: str) -> EngineSpeed:
    """The record of two engines: `first` produced `compiled`, `second` the rival."""
    one = mean_round([found.compiled for found in times])
    other = mean_round([found.rival for found in times])
    speedup, noise = ratio(one, other)
    return EngineSpeed(
        first=first,
        second=second,
        first_ms=median(one) * 1e3,
        second_ms=median(other) * 1e3,
        speedup=speedup,
        noise=noise,
        rounds=len(one),
        in_noise=abs(speedup - 1) <= noise * speedup,
    )
