"""Run time and peak memory: our engine against Inductor, in the same process, call by call.

    python benchmarks/engine_speed.py [--threads 1] [--only NAME] [--kernels | --models] [--pooled]
                                      [--times | --memory]

Both sides run through torch.compile, in interleaved rounds that alternate which side is first. Each
time is the lower quartile of the rounds, because interference only makes a round longer. The ratio
is the median of the ratios within a round, followed by their middle half. With one thread the clock
is the thread's own CPU time, which excludes other programs; with more it is wall time. Both sides
use the same allocator, configured to keep freed memory (no page faults on either side), and our
pool of outputs is off. `--pooled` leaves allocators as shipped.

Memory is the peak in bytes of one call after warm-up, beyond what existed before it, from every
block that any library allocates and frees in it (`allocations.py` lists what is excluded). It is
counted in a separate process, in which no freed memory is kept. `--memory` only counts, and adds
the sample models and models of `transformers` and timm if they are installed: forward, and for
trainable models also forward and backward. Targets: geomean of the kernels at least 1.5x; each
model at least 1.0x, no row below 0.95x; peak memory at most Inductor's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COUNTS = "--counts"
"""The option that starts the counting process."""

Row = tuple[str, str, Callable[[], tuple[Any, Any]], bool]


def rows(kernels: bool, models: bool, only: str) -> list[Row]:
    """(kind, name, a function that makes function and inputs, whether its backward also runs)."""
    from benchmarks.kernel_cases import KERNELS
    from benchmarks.models import MODELS

    found: list[Row] = []
    if kernels:
        found += [
            ("kernel", name, (lambda c=case: (c.function, c.inputs())), False)
            for name, case in KERNELS.items()
        ]
    if models:
        found += [("model", name, case.make, case.train) for name, case in MODELS.items()]
    return [row for row in found if only in row[1]]


def both_sides(row: Row) -> dict[str, Callable[[], Any]]:
    """A warm call of each engine."""
    import torch

    from benchmarks.backend import backend
    from benchmarks.models import run_once

    _, _, make, train = row
    torch.manual_seed(0)
    function, inputs = make()
    sides: dict[str, Callable[[], Any]] = {}
    for engine in ("inductor", "tcw"):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=backend(engine))
        sides[engine] = partial(run_once, compiled, inputs, train)
        sides[engine]()
    for call in sides.values():
        call()
    return sides


def peaks_of_a_process_of_its_own() -> Iterator[tuple[str, dict[str, int]]]:
    """Each row with the peak bytes of each engine, as they are counted."""
    from benchmarks import allocations
    from benchmarks.timing import SAME_ALLOCATOR

    kept = {key: value for key, value in os.environ.items() if key not in SAME_ALLOCATOR}
    with tempfile.TemporaryDirectory() as folder:
        counting = subprocess.Popen(
            [sys.executable, *sys.argv, COUNTS],
            env={**kept, **allocations.environment(Path(folder))},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert counting.stdout
        for line in counting.stdout:
            if line.startswith("["):
                name, peaks = json.loads(line)
                yield name, peaks
        if counting.wait():
            raise SystemExit(counting.returncode)


def print_memory(threads: int) -> None:
    """Print each row as it is counted, then the number of rows above Inductor's."""
    above: list[str] = []
    count = 0
    print(f"{threads} thread(s); bytes that one call holds at its peak")
    print(f"{'':36} {'inductor':>13} {'tcw':>13} {'difference':>12}")
    for name, peaks in peaks_of_a_process_of_its_own():
        count += 1
        first, second = peaks["inductor"], peaks["tcw"]
        if second > first:
            above.append(name)
        print(f"{name:36} {first:13,} {second:13,} {second - first:+12,}", flush=True)
    words = f": {', '.join(above)}" if above else ""
    print(f"{len(above)} of {count} rows above inductor{words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--pooled", action="store_true", help="allocators as shipped")
    parser.add_argument("--times", action="store_true", help="run time alone, no peak memory")
    parser.add_argument("--memory", action="store_true", help="peak memory alone, of more models")
    parser.add_argument(COUNTS, action="store_true", dest="counts", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from benchmarks import timing

    if arguments.memory and not arguments.counts:
        print_memory(arguments.threads)
        return
    if not (arguments.pooled or arguments.counts) and os.environ.get("MALLOC_MMAP_MAX_") != "0":
        os.execve(
            sys.executable, [sys.executable, *sys.argv], {**os.environ, **timing.SAME_ALLOCATOR}
        )
    import torch

    torch.set_num_threads(arguments.threads)
    chosen = rows(not arguments.models, not arguments.kernels, arguments.only)
    if arguments.counts:
        from benchmarks.memory_cases import memory_cases, print_peaks

        every = memory_cases(
            not arguments.models, not arguments.kernels, arguments.memory, arguments.only
        )
        print_peaks(every)
        return
    peaks = {} if arguments.times else dict(peaks_of_a_process_of_its_own())
    clock = timing.clock(arguments.threads)
    print(f"{arguments.threads} thread(s); milliseconds, lower quartiles of {clock.__name__}")
    print(
        f"{'':36} {'inductor':>9} {'tcw':>9} {'ratio':>7}  middle half"
        f"   {'peak: inductor':>17} {'tcw':>13}"
    )
    found: dict[str, list[float]] = {"kernel": [], "model": []}
    for row in chosen:
        kind, name, _, _ = row
        times = timing.interleaved(both_sides(row), arguments.seconds, clock)
        ratios = timing.ratios(times, "inductor")
        inductor, ours = (timing.undisturbed(times[side]) * 1e3 for side in ("inductor", "tcw"))
        ratio = statistics.median(ratios)
        quarters = statistics.quantiles(ratios, n=4)
        found[kind].append(ratio)
        peak = peaks.get(name)
        memory = f"{peak['inductor']:17,} {peak['tcw']:13,}" if peak else ""
        print(
            f"{name:36} {inductor:9.4f} {ours:9.4f} {ratio:6.2f}x"
            f"  {quarters[0]:.2f}-{quarters[2]:.2f}   {memory}",
            flush=True,
        )
    for kind, ratios in found.items():
        if ratios:
            mean = timing.geomean(ratios)
            print(f"{kind}s: geomean {mean:.2f}x, worst {min(ratios):.2f}x of {len(ratios)}")


if __name__ == "__main__":
    main()
