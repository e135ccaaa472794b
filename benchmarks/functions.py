"""Elementary functions of our engine against Inductor's and eager's, the slowest first.

    python benchmarks/functions.py [--only NAME] [--dtype float32] [--size 1048576] [--seconds 0.5]

One thread, its CPU time. Each call goes through Dynamo, as a user's does; the three are called in
turn in each round, and each figure is the lower quartile of the rounds. Inputs lie in
(0.05, 0.95) and (0.1, 3.1).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import timing
from benchmarks.backend import backend

Call = Callable[[Tensor, Tensor], Any]
UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid", "tanh", "erf", "erfc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "atanh"),
    *("sqrt", "rsqrt", "reciprocal"),
)
BINARY = ("pow", "atan2", "hypot", "fmod", "remainder", "floor_divide", "copysign")


def unary(name: str, a: Tensor, b: Tensor) -> Tensor:
    return getattr(torch, name)(a)


def binary(name: str, a: Tensor, b: Tensor) -> Tensor:
    return getattr(torch, name)(a, b)


def cases() -> dict[str, Call]:
    found: dict[str, Call] = {name: partial(unary, name) for name in UNARY}
    found |= {name: partial(binary, name) for name in BINARY}
    found["gelu"] = lambda a, b: F.gelu(a)
    found["softmax"] = lambda a, b: torch.softmax(a.view(-1, 256), -1)
    found["logsumexp"] = lambda a, b: torch.logsumexp(a.view(-1, 256), -1)
    return found


def measured(call: Call, a: Tensor, b: Tensor, seconds: float) -> list[float]:
    """Seconds of eager, Inductor and ours."""
    torch._dynamo.reset()
    every = {
        "eager": call,
        "inductor": torch.compile(call),
        "tcw": torch.compile(call, backend=backend("tcw")),
    }
    sides = {name: partial(side, a, b) for name, side in every.items()}
    times = timing.interleaved(sides, seconds, timing.clock(1))
    return [timing.undisturbed(found) for found in times.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only")
    parser.add_argument("--dtype", choices=("float32", "float64"))
    parser.add_argument("--size", type=int, default=1 << 20)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row")
    given = parser.parse_args()
    torch.set_num_threads(1)
    chance = torch.Generator().manual_seed(0)
    rows = []
    for dtype in [given.dtype] if given.dtype else ["float32", "float64"]:
        kind = getattr(torch, dtype)
        a = torch.rand(given.size, generator=chance, dtype=kind) * 0.9 + 0.05
        b = torch.rand(given.size, generator=chance, dtype=kind) * 3 + 0.1
        for name, call in cases().items():
            if given.only in (None, name):
                rows.append((name, dtype, *measured(call, a, b, given.seconds)))
    rows.sort(key=lambda row: row[3] / row[4])
    print(f"{'function':14} {'dtype':8} {'eager µs':>10} {'Inductor':>10} {'tcw':>10}"
          f" {'Inductor/tcw':>13} {'eager/tcw':>10}")  # fmt: skip
    for name, dtype, eager, inductor, ours in rows:
        print(f"{name:14} {dtype:8} {eager * 1e6:10.1f} {inductor * 1e6:10.1f} {ours * 1e6:10.1f}"
              f" {inductor / ours:13.2f} {eager / ours:10.2f}")  # fmt: skip
    for place, name in ((3, "Inductor"), (2, "eager")):
        mean = statistics.geometric_mean([row[place] / row[4] for row in rows])
        print(f"geometric mean of {name}'s time over ours: {mean:.2f}")


if __name__ == "__main__":
    main()
