"""Run time and peak memory: our engine against Inductor, in the same process, call by call.

    python benchmarks/engine_speed.py [--threads 1] [--only NAME] [--kernels | --models] [--pooled]

Both sides run through torch.compile, interleaved in rounds; each figure is the median of the
rounds, the ratio the median of the ratios within a round, its spread the middle half. Both sides
allocate from the same allocator, set up to keep what is freed (no page faults on either side), and
our pool of outputs is off; `--pooled` leaves allocators as they are shipped. Memory is the most
that is alive above the inputs, in a call after warm-up, as torch's profiler counts it.
Targets: geomean of the kernels at least 1.5x; each model at least 1.0x, no row below 0.95x.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAME_ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "TCW_POOL_BYTES": "0",
}


def peak_bytes(call: Callable[[], Any]) -> int:
    """Most bytes alive at once during one call beyond those before it."""
    from torch.profiler import ProfilerActivity, profile

    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        kept = call()
    del kept
    events = found.profiler.kineto_results.events()
    alive = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            alive += event.nbytes()
            most = max(most, alive)
    return most


def interleaved(
    sides: dict[str, Callable[[], Any]], seconds: float
) -> tuple[dict[str, float], list[float]]:
    """Median seconds of each side, and the ratio first/second of each round."""
    first, second = sides
    for call in sides.values():
        call()
        call()
    begun = time.perf_counter()
    sides[first]()
    inner = max(1, int(2e-3 / (time.perf_counter() - begun)))
    times: dict[str, list[float]] = {name: [] for name in sides}
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds or len(times[first]) < 7:
        order = list(sides) if len(times[first]) % 2 == 0 else list(reversed(sides))
        for name in order:
            call = sides[name]
            start = time.perf_counter()
            for _ in range(inner):
                call()
            times[name].append((time.perf_counter() - start) / inner)
    ratios = [a / b for a, b in zip(times[first], times[second], strict=True)]
    return {name: statistics.median(values) for name, values in times.items()}, ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--pooled", action="store_true", help="allocators as shipped")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row")
    arguments = parser.parse_args()
    if not arguments.pooled and os.environ.get("MALLOC_MMAP_MAX_") != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SAME_ALLOCATOR})
    sys.path.insert(0, str(ROOT))
    import torch

    from benchmarks.backend import backend
    from benchmarks.kernel_cases import KERNELS
    from benchmarks.models import MODELS, run_once

    torch.set_num_threads(arguments.threads)
    rows: list[tuple[str, str, Callable[[], tuple[Any, Any]], bool]] = []
    if not arguments.models:
        rows += [
            ("kernel", name, (lambda c=case: (c.function, c.inputs())), False)
            for name, case in KERNELS.items()
        ]
    if not arguments.kernels:
        rows += [("model", name, case.make, case.train) for name, case in MODELS.items()]
    print(f"{arguments.threads} thread(s); milliseconds, medians")
    print(
        f"{'':36} {'inductor':>9} {'tcw':>9} {'ratio':>7}  middle half"
        f"   {'peak MB: inductor':>18} {'tcw':>7}"
    )
    found: dict[str, list[float]] = {"kernel": [], "model": []}
    for kind, name, make, train in rows:
        if arguments.only not in name:
            continue
        torch.manual_seed(0)
        function, inputs = make()
        sides, peaks = {}, {}
        for engine in ("inductor", "tcw"):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend=backend(engine))
            run_once(compiled, inputs, train)
            sides[engine] = partial(run_once, compiled, inputs, train)
        for engine, call in sides.items():
            call()
            peaks[engine] = peak_bytes(call)
        medians, ratios = interleaved(sides, arguments.seconds)
        ratio = statistics.median(ratios)
        quarters = statistics.quantiles(ratios, n=4)
        found[kind].append(ratio)
        print(
            f"{name:36} {medians['inductor'] * 1e3:9.4f} {medians['tcw'] * 1e3:9.4f} {ratio:6.2f}x"
            f"  {quarters[0]:.2f}-{quarters[2]:.2f}   {peaks['inductor'] / 1e6:18.2f} "
            f"{peaks['tcw'] / 1e6:7.2f}",
            flush=True,
        )
    for kind, ratios in found.items():
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"{kind}s: geomean {mean:.2f}x, worst {min(ratios):.2f}x of {len(ratios)}")


if __name__ == "__main__":
    main()
