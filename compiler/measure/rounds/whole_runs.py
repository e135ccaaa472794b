"""Whole runs timed in rounds: by the host's clock, or by the GPU's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tcw.compiler.measure.calls.runs import Prepare
from tcw.compiler.measure.rounds.rounds import RoundsPlan, in_rounds, warm_up
from tcw.compiler.measure.rounds.team import Team

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


def seconds_in_rounds(
    together: Sequence[Sequence[Prepare]],
    plan: RoundsPlan,
    warmed: Callable[[], None] = lambda: None,
) -> list[list[list[float]]]:
    """Seconds of every run: group of runs that are compared, run, round.

    `warmed` is called between the warm-up and the first round. Time that the calling thread waits
    for a processor is excluded, unless a GPU keeps running meanwhile.
    """
    times: list[list[list[float]]] = [[[] for _ in runs] for runs in together]
    with Team(torch.get_num_threads()) as team:
        warm_up([prepare for runs in together for prepare in runs], lambda one: timed(one, team))
        warmed()

        def once(place: tuple[int, int], turn: int, count: int) -> None:
            group, run = place
            times[group][run].append(timed(together[group][run], team))

        places = [[(group, run) for run in range(len(runs))] for group, runs in enumerate(together)]
        in_rounds(places, once, plan)
    return times


def timed(prepare: Prepare, team: Team) -> float:
    """Seconds of one run, which is prepared before the clock starts."""
    run = prepare()
    if isinstance(run, DeviceRun):
        return run.seconds()
    _synchronize()
    watch = team.watch()
    began = time.perf_counter_ns()
    result = run()
    _synchronize()
    ended = time.perf_counter_ns()
    seconds = (ended - began) / 1e9
    waited = watch.caller(began, ended)
    team.note(seconds, watch.longest())
    del result
    return seconds if _gpu_is_used() else seconds - waited


def _synchronize() -> None:
    if _gpu_is_used():
        torch.cuda.synchronize()


def _gpu_is_used() -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())
