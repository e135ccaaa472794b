"""Several versions of one call, timed in turn: what the benchmarks of the engine share."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from getpass import getuser
from tempfile import gettempdir
from typing import Any

from tcw.compiler.measure.rounds.rounds import RoundsPlan, in_rounds

SAME_ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "TCW_POOL_BYTES": "0",
}
"""The environment in which no side has page faults: freed memory is kept, our pool is off."""


def environment(threads: int) -> dict[str, str]:
    """What a measured process has in its environment: `SAME_ALLOCATOR`, and a folder of Inductor's
    cache for each instruction set and number of threads. The key of Inductor's graphs does not hold
    the former, nor before torch 2.12 the latter: a run could load code that another compiled."""
    caches = os.environ.get("TORCHINDUCTOR_CACHE_DIR", f"{gettempdir()}/torchinductor_{getuser()}")
    machine = os.environ.get("ATEN_CPU_CAPABILITY", "native")
    return {**SAME_ALLOCATOR, "TORCHINDUCTOR_CACHE_DIR": f"{caches}/{machine}-{threads}"}


TURN = 2e-3
"""Seconds for which a side is called in each round, at least one call."""
FEWEST = 7
ANY_NUMBER = 1_000_000


def clock(threads: int) -> Callable[[], float]:
    """Seconds: the thread's own CPU time, which excludes other programs, or wall time of several
    threads."""
    return time.thread_time if threads == 1 else time.perf_counter


def interleaved(
    sides: Mapping[str, Callable[[], Any]],
    seconds: float,
    clock: Callable[[], float],
    fewest: int = FEWEST,
) -> dict[str, list[float]]:
    """Seconds per call of each side in each round: about `seconds` in all, `fewest` rounds or
    more."""
    calls: dict[str, int] = {}
    for name, call in sides.items():
        call()
        began = time.perf_counter()
        call()
        calls[name] = max(1, int(TURN / (time.perf_counter() - began)))
    times: dict[str, list[float]] = {name: [] for name in sides}

    def once(name: str, turn: int, count: int) -> None:
        call = sides[name]
        began = clock()
        for _ in range(calls[name]):
            call()
        times[name].append((clock() - began) / calls[name])

    in_rounds([list(sides)], once, RoundsPlan(rounds=ANY_NUMBER, seconds=seconds, least=fewest))
    return times


def undisturbed(times: list[float]) -> float:
    """The lower quartile of the rounds, because interference only makes a round longer."""
    return statistics.quantiles(times, n=4)[0]


def ratios(times: Mapping[str, list[float]], other: str, ours: str = "tcw") -> list[float]:
    """The other's time over ours, round by round."""
    return [a / b for a, b in zip(times[other], times[ours], strict=True)]
