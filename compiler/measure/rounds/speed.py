"""Eager against compiled for the whole model, side by side in one process.

After warm-up the sides run in interleaved rounds, in alternating order, so that a drift of the
machine affects all of them. The times are summarised by medians and median absolute deviations. The
sides are eager and compiled, plus the other engine's result if two engines are compared.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

import torch

from compiler.measure.rounds.team import Team
from compiler.trace.records import EngineSpeed, SetSpeed, Speed

SECONDS = 3.0
"""Time budget of all pairs together."""
PAIRS = 60
LEAST = 10
"""The minimum number of pairs, even beyond the budget, unless they exceed `PATIENCE`."""
PATIENCE = 30.0
"""Seconds after which the minimum number of pairs is three."""

Prepared = Callable[[], object]
"""A run that is ready to be timed: its inputs are already copied."""

Side = Callable[[], Prepared]
"""Prepares one run, untimed."""

CYCLES = 200_000
"""GPU cycles per launch, about 0.1 ms, in which the host gets ahead of the GPU."""
MOST_CYCLES = 200_000_000
"""The maximum number of cycles, for a slower host."""


@dataclass
class DeviceRun:
    """A run timed by the GPU's own clock: the time between two events on its stream.

    The GPU is kept busy until everything is launched, so that it goes from the first event to the
    last without waiting for the host. The host's launch overhead is not part of the time.
    """

    run: Callable[[], object]
    launches: int = 1
    cycles: int = CYCLES

    def __call__(self) -> object:
        return self.run()

    def seconds(self) -> float:
        """Run it once. If the host was too slow, run it again with more patience."""
        while True:
            cycles = self.cycles * max(1, self.launches)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            torch.cuda._sleep(cycles)
            start.record()
            self.run()
            end.record()
            ahead = not start.query()
            end.synchronize()
            if ahead or cycles >= MOST_CYCLES:
                return float(start.elapsed_time(end)) / 1e3
            self.cycles *= 2


@dataclass
class Contender:
    """One input set: `eager()`, `compiled()` and `rival()` each prepare a run, untimed, and return
    it."""

    call: int
    eager: Callable[[], Prepared]
    compiled: Callable[[], Prepared]
    rival: Callable[[], Prepared] | None = None
    """The same model, compiled by the other engine."""

    def sides(self) -> list[Side]:
        return [self.eager, self.compiled, *([self.rival] if self.rival is not None else [])]


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
    seconds: float = SECONDS,
    warmed: Callable[[], None] = lambda: None,
) -> list[Times]:
    """Time every contender in each round. Garbage collection is off while the clock runs.
    `warmed` is called between the warm-up and the first round."""
    found = in_rounds([contender.sides() for contender in contenders], seconds, warmed=warmed)
    return [Times(*sides) for sides in found]


def in_rounds(
    contenders: Sequence[Sequence[Side]],
    seconds: float = SECONDS,
    rounds: int = PAIRS,
    least: int = LEAST,
    warmed: Callable[[], None] = lambda: None,
) -> list[list[list[float]]]:
    """Seconds of every run: contender, side, round.

    Each side of each contender runs twice to warm up, then once per round, in alternating order.
    Ends after `rounds`, or when `seconds` have passed and `least` rounds are done. Garbage
    collection is off while the clock runs. Time that the calling thread waits for a processor is
    excluded, unless a GPU keeps running meanwhile.
    """
    times: list[list[list[float]]] = [[[] for _ in sides] for sides in contenders]
    with Team(torch.get_num_threads()) as team:
        for sides in contenders:
            for _ in range(2):
                for side in sides:
                    _timed(side, team)
        warmed()
        with no_collection():
            began = time.perf_counter()
            for done in range(rounds):
                spent = time.perf_counter() - began
                if (done >= least and spent > seconds) or (done >= 3 and spent > PATIENCE):
                    break
                for sides, kept in zip(contenders, times, strict=True):
                    order = list(zip(sides, kept, strict=True))
                    for side, seconds_of in reversed(order) if done % 2 else order:
                        seconds_of.append(_timed(side, team))
    return times


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect garbage first, and not inside the block."""
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _timed(prepare: Side, team: Team) -> float:
    run = prepare()
    if isinstance(run, DeviceRun):
        return run.seconds()
    _synchronize()
    watch = team.watch()
    start = time.perf_counter()
    result = run()
    _synchronize()
    seconds = time.perf_counter() - start
    waited = watch.caller()
    team.tell(seconds, watch.longest())
    del result
    return seconds if _gpu_is_used() else seconds - waited


def cpu_of(prepare: Callable[[], Prepared]) -> float:
    """CPU seconds of this process for one warm run."""
    run = prepare()
    start = time.process_time()
    run()
    return time.process_time() - start


def _synchronize() -> None:
    if _gpu_is_used():
        torch.cuda.synchronize()


def _gpu_is_used() -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def spread(values: Sequence[float]) -> float:
    """Median absolute deviation."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


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
    count = len(contenders)
    eager = [sum(round_) / count for round_ in zip(*(found.eager for found in times), strict=True)]
    compiled = [
        sum(round_) / count for round_ in zip(*(found.compiled for found in times), strict=True)
    ]
    ratios = [a / b for a, b in zip(eager, compiled, strict=True)]
    speedup = median(ratios)
    noise = max(3 * spread(ratios) / speedup, 0.01)
    running = [median(found.compiled) for found in times]
    beyond = sum(max(0.0, seconds - running[index]) for seconds, index in first_calls)
    return Speed(
        eager_ms=median(eager) * 1e3,
        compiled_ms=median(compiled) * 1e3,
        eager_mad_ms=spread(eager) * 1e3,
        compiled_mad_ms=spread(compiled) * 1e3,
        speedup=speedup,
        noise=noise,
        pairs=len(ratios),
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
    one, other = (
        [sum(round_) / len(times) for round_ in zip(*sides, strict=True)]
        for sides in ([found.compiled for found in times], [found.rival for found in times])
    )
    ratios = [a / b for a, b in zip(one, other, strict=True)]
    speedup = median(ratios)
    noise = max(3 * spread(ratios) / speedup, 0.01)
    return EngineSpeed(
        first=first,
        second=second,
        first_ms=median(one) * 1e3,
        second_ms=median(other) * 1e3,
        speedup=speedup,
        noise=noise,
        rounds=len(ratios),
        in_noise=abs(speedup - 1) <= noise * speedup,
    )


def children_cpu_seconds() -> float:
    """CPU seconds of living descendants, and of children that they and this process waited for.

    Inductor builds in processes that outlive a compile, so these have to be queried one by one.
    """
    spent = os.times()
    total = spent.children_user + spent.children_system
    ticks = os.sysconf("SC_CLK_TCK")
    known = {os.getpid()}
    found: dict[int, tuple[int, float]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return total
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:
                parts = stream.read().rpartition(b")")[2].split()
            found[int(name)] = (int(parts[1]), sum(int(part) for part in parts[11:15]) / ticks)
        except (OSError, IndexError, ValueError):
            continue
    waiting = list(known)
    while waiting:
        parent = waiting.pop()
        for pid, (above, seconds) in found.items():
            if above == parent and pid not in known:
                known.add(pid)
                waiting.append(pid)
                total += seconds
    return total
