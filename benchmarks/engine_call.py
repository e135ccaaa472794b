"""The overhead of a call beyond its arithmetic: our engine against Inductor on tiny graphs.

`torch` is what TorchDynamo and AOTAutograd take by themselves: their call of a compiled graph that
returns the same tensors each time. The rest of a side is its own: allocating results included.

    python benchmarks/engine_call.py [--only NAME] [--seconds 3]

Both sides run through torch.compile including guards, in one process and on one thread, interleaved
in rounds of about two milliseconds. Times are microseconds of the thread per call: the lower
quartile of the rounds. The ratio is the median of the ratios within a round. Target: not slower
than Inductor.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ("inductor", "tcw")


def cases() -> dict[str, tuple[Callable[[], Callable[..., Any]], tuple[Any, ...], bool]]:
    """Name -> (a function that makes the function, its inputs, whether the backward also runs)."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    def multiplied(x: Any, weight: Any) -> Any:
        return F.gelu(x @ weight)

    def network() -> Any:
        return nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8), nn.LayerNorm(8))

    plain = torch.randn(8), torch.randn(8)
    matrices = torch.randn(8, 8), torch.randn(8, 8)
    weighted = torch.randn(8, 8), torch.randn(8, 8, requires_grad=True)
    return {
        "add-mul": (lambda: lambda x, y: (x + y) * 2.0, plain, False),
        "mm + gelu": (lambda: multiplied, matrices, False),
        "mm + gelu, with grad": (lambda: multiplied, weighted, False),
        "mm + gelu, forward + backward": (lambda: multiplied, weighted, True),
        "network, forward + backward": (network, (torch.randn(4, 8),), True),
    }


def once(compiled: Callable[..., Any], inputs: tuple[Any, ...], gradient: Any) -> None:
    output = compiled(*inputs)
    if gradient is not None:
        output.backward(gradient)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each row")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    import torch

    from benchmarks import timing
    from benchmarks.backend import TORCH, backend

    torch.set_num_threads(1)
    print(f"{'microseconds a call':32} {TORCH:>9} {'inductor':>9} {'tcw':>9}   ratio  middle half")
    for name, (make, inputs, train) in cases().items():
        if arguments.only not in name:
            continue
        sides = {}
        for engine in (TORCH, *ENGINES):
            torch._dynamo.reset()
            torch.manual_seed(0)
            compiled = torch.compile(make(), backend=backend(engine))
            gradient = torch.ones_like(compiled(*inputs)) if train else None
            sides[engine] = partial(once, compiled, inputs, gradient)
            sides[engine]()
        times = timing.interleaved(sides, arguments.seconds, time.thread_time)
        ratios = timing.ratios(times, "inductor")
        quarters = statistics.quantiles(ratios, n=4)
        print(
            f"{name:32} {timing.undisturbed(times[TORCH]) * 1e6:9.2f} "
            f"{timing.undisturbed(times['inductor']) * 1e6:9.2f} "
            f"{timing.undisturbed(times['tcw']) * 1e6:9.2f} "
            f"{statistics.median(ratios):6.2f}x  {quarters[0]:.2f}-{quarters[2]:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
