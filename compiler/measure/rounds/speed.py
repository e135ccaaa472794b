"""Eager against compiled for the whole model, side by side in one process.

Both run in the same rounds, with the other engine's result if two engines are compared. The times
are summarised by medians and median absolute deviations.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch

from tcw.compiler.measure.calls.runs import Prepare
from tcw.compiler.measure.rounds.noise import mean_round, ratio, spread
from tcw.compiler.measure.rounds.rounds import RoundsPlan
from tcw.compiler.trace.records import EngineSpeed, SetSpeed, Speed

PLAN = RoundsPlan(rounds=60, seconds=3.0, least=10, patience=30.0)


def cpu_of(prepare: Prepare) -> float:
    """CPU seconds of this process for one warm run."""
    run = prepare()
    start = time.process_time()
    run()
    return time.process_time() - start


def summarise(
    calls: Sequence[int],
    eager_sets: Sequence[Sequence[float]],
    compiled_sets: Sequence[Sequence[float]],
    first_calls: Sequence[tuple[float, int]],
    cpu_seconds: float | None,
    what: str,
    device: str = "",
    peaks: tuple[int | None, int | None] = (None, None),
    compiled_again: int = 0,
) -> Speed:
    """The record. A round's time is the mean over its input sets, so times are per call.

    `calls` has the number of each input set's call; `eager_sets` and `compiled_sets` its seconds,
    one per round. `first_calls` has, for each recorded call, its wall seconds and the index of the
    input set that stands for it. `cpu_seconds`: the CPU seconds that these calls took beyond
    running. `peaks`: bytes of eager and compiled. `compiled_again`: graphs compiled during the
    rounds.
    """
    eager, compiled = mean_round(eager_sets), mean_round(compiled_sets)
    speedup, noise = ratio(eager, compiled)
    running = [median(seconds) for seconds in compiled_sets]
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
                call=call,
                eager_ms=median(own) * 1e3,
                compiled_ms=median(made) * 1e3,
                pairs=len(own),
            )
            for call, own, made in zip(calls, eager_sets, compiled_sets, strict=True)
        ),
        threads=torch.get_num_threads(),
        what=what,
        device=device,
        eager_peak_bytes=peaks[0],
        compiled_peak_bytes=peaks[1],
        compiled_again=compiled_again,
    )


def compare(
    first_sets: Sequence[Sequence[float]],
    second_sets: Sequence[Sequence[float]],
    first: str,
    second: str,
) -> EngineSpeed:
    """The record of two engines, from each one's seconds for each input set."""
    one, other = mean_round(first_sets), mean_round(second_sets)
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
