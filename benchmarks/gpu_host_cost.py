"""What a call costs the host on a GPU: 1, 10 and 100 small kernels that cannot be fused.

    python benchmarks/gpu_host_cost.py [--sides eager,tcw] [--counts 1,10] [--seconds 3]

A call is a chain of softmaxes over rows and columns in turn, 64 x 64, one kernel each.
`host`: microseconds until the call returns, with the device kept up with. `done`: until the device
is done, too, one call at a time. Sides run in turn in rounds, in one process: medians, with three
times the median deviation.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.backend import compiled  # noqa: E402
from tcw.compiler.measure.rounds.noise import spread  # noqa: E402
from tcw.compiler.measure.rounds.rounds import RoundsPlan, in_rounds  # noqa: E402

SIDES = ("eager", "inductor", "inductor reduce-overhead", "tcw", "tcw reduce-overhead")
IN_FLIGHT = 200
"""At most this many kernels are launched before the device is waited for: its queue holds 1,024."""

Call = Callable[[], object]


def chain(count: int) -> Callable[[Any], Any]:
    import torch

    def run(x: Any) -> Any:
        for number in range(count):
            x = torch.softmax(x, number % 2)
        return x

    return run


def once(call: Call, count: int) -> tuple[float, float]:
    """Microseconds of a call on the host, and of one until the device is done."""
    import torch

    calls = max(1, IN_FLIGHT // count)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    host = (time.perf_counter() - began) / calls
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return host * 1e6, (time.perf_counter() - began) * 1e6


def turn(
    calls: dict[str, Call],
    times: dict[str, list[tuple[float, float]]],
    count: int,
    side: str,
    number: int,
    often: int,
) -> None:
    for _ in range(often):
        times[side].append(once(calls[side], count))


def cell(values: list[float]) -> str:
    return f"{median(values):.1f} ±{3 * spread(values):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--counts", default="1,10,100")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each row")
    arguments = parser.parse_args()
    import torch

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print("| kernels | side | host µs | done µs |\n|---|---|---|---|")
    for count in map(int, arguments.counts.split(",")):
        x = torch.randn(64, 64, device="cuda")
        expected = chain(count)(x)
        calls: dict[str, Call] = {}
        for side in filter(None, arguments.sides.split(",")):
            torch._dynamo.reset()
            run = compiled(chain(count), side, dynamic=False)
            with torch.no_grad():
                for _ in range(4):
                    torch.compiler.cudagraph_mark_step_begin()
                    torch.testing.assert_close(run(x), expected, rtol=1e-4, atol=1e-6)
            calls[side] = partial(run, x)
        times: dict[str, list[tuple[float, float]]] = {side: [] for side in calls}
        make = partial(turn, calls, times, count)
        with torch.no_grad():
            in_rounds([list(calls)], make, RoundsPlan(rounds=1_000_000, seconds=arguments.seconds))
        for side, found in times.items():
            host, done = zip(*found, strict=True)
            print(f"| {count} | {side} | {cell(list(host))} | {cell(list(done))} |", flush=True)


if __name__ == "__main__":
    main()
