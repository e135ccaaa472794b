"""Run time and peak memory: our engine against Inductor and eager, in one process, call by call.

    python benchmarks/engine_speed.py [--threads 1] [--only NAME] [--pooled] [--times | --memory]
                                      [--kernels | --models | --library]

All sides run in interleaved rounds that alternate which side is first. Each time is the lower
quartile of the rounds, because interference only makes a round longer. A ratio is the median of the
ratios within a round; Inductor's is followed by their middle half. With one thread the clock is the
thread's own CPU time, which excludes other programs; with more it is wall time. All sides use the
same allocator, configured to keep freed memory (no page faults on any side), and our pool of
outputs is off. `--pooled` leaves allocators as shipped.

`--library` measures models that we did not write (`library_models.py`) instead, inference and
training.

Memory is the peak in bytes of one call after warm-up, beyond what existed before it, from every
block that any library allocates and frees in it (`allocations.py` lists what is excluded). It is
counted in a separate process, in which no freed memory is kept. `--memory` only counts, and adds
the sample models and those of `--library`: forward, and for trainable models also forward and
backward. Targets: geomean of the kernels at least 1.5x; each
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
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COUNTS = "--counts"
"""The option that starts the counting process."""
SIDES = ("eager", "inductor", "tcw")


class Row(NamedTuple):
    """A row of the table."""

    kind: str
    name: str
    make: Callable[[], tuple[Callable[..., Any], Any]]
    """A function and its inputs; of a library's model, the sets of its inputs."""
    train: bool
    """Whether its backward also runs."""


def rows(kernels: bool, models: bool, library: bool, only: str) -> list[Row]:
    from benchmarks.kernel_cases import KERNELS
    from benchmarks.library_models import LIBRARY_MODELS
    from benchmarks.models import MODELS

    found: list[Row] = []
    if library:
        for name, make in LIBRARY_MODELS.items():
            found.append(Row("library model", name, make, False))
            found.append(Row("library model", f"{name}, train", make, True))
    if kernels:
        found += [
            Row("kernel", name, (lambda c=case: (c.function, c.inputs())), False)
            for name, case in KERNELS.items()
        ]
    if models:
        found += [Row("model", name, case.make, case.train) for name, case in MODELS.items()]
    return [row for row in found if only in row.name]


def sides_of(row: Row) -> dict[str, Callable[[], Any]]:
    """A warm call of eager and of each engine."""
    import torch

    from benchmarks.backend import backend
    from benchmarks.library_models import call
    from benchmarks.models import run_once

    torch.manual_seed(0)
    function, inputs = row.make()
    run = run_once
    if row.kind == "library model":
        run = call
        function.train(row.train)
    sides: dict[str, Callable[[], Any]] = {"eager": partial(run, function, inputs, row.train)}
    for engine in ("inductor", "tcw"):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=backend(engine))
        sides[engine] = partial(run, compiled, inputs, row.train)
        sides[engine]()
    for side in sides.values():
        side()
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
    parser.add_argument("--library", action="store_true", help="models that we did not write")
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
        environment = {**os.environ, **timing.environment(arguments.threads)}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    import torch

    torch.set_num_threads(arguments.threads)
    own = not arguments.library
    kernels, models = own and not arguments.models, own and not arguments.kernels
    if arguments.counts:
        from benchmarks.memory_cases import memory_cases, print_peaks

        others = arguments.memory or arguments.library
        every = memory_cases(kernels, models, others, arguments.only)
        print_peaks(every)
        return
    peaks = {} if arguments.times else dict(peaks_of_a_process_of_its_own())
    clock = timing.clock(arguments.threads)
    print(f"{arguments.threads} thread(s); milliseconds, lower quartiles of {clock.__name__}")
    print(
        f"{'':36} {'eager':>9} {'inductor':>9} {'tcw':>9} {'eager/':>8} {'inductor/':>9}"
        f"  middle half   {'peak: inductor':>17} {'tcw':>13}"
    )
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows(kernels, models, arguments.library, arguments.only):
        try:
            sides = sides_of(row)
        except ImportError as error:
            print(f"{row.name}: {error}", file=sys.stderr)
            continue
        times = timing.interleaved(sides, arguments.seconds, clock)
        ratios = timing.ratios(times, "inductor")
        eager, inductor, ours = (timing.undisturbed(times[side]) * 1e3 for side in SIDES)
        over_eager = statistics.median(timing.ratios(times, "eager"))
        ratio = statistics.median(ratios)
        quarters = statistics.quantiles(ratios, n=4)
        found.setdefault(row.kind, []).append((over_eager, ratio))
        peak = peaks.get(row.name)
        memory = f"{peak['inductor']:17,} {peak['tcw']:13,}" if peak else ""
        print(
            f"{row.name:36} {eager:9.4f} {inductor:9.4f} {ours:9.4f} {over_eager:7.2f}x"
            f" {ratio:8.2f}x  {quarters[0]:.2f}-{quarters[2]:.2f}   {memory}",
            flush=True,
        )
    for kind, pairs in found.items():
        for place, side in enumerate(SIDES[:2]):
            each = [pair[place] for pair in pairs]
            mean, worst = statistics.geometric_mean(each), min(each)
            print(
                f"{side} over tcw, {kind}s: geomean {mean:.2f}x, worst {worst:.2f}x of {len(each)}"
            )


if __name__ == "__main__":
    main()
