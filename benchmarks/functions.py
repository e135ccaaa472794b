"""Elementary functions of our engine against Inductor's and eager's, the slowest first.

    python benchmarks/functions.py [--only NAME] [--dtype float32] [--size 1048576] [--rounds 15]

One thread. Each call goes through Dynamo, as a user's does; the three are called in turn in each
round, and each figure is the median over the rounds. Inputs lie in (0.05, 0.95) and (0.1, 3.1).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from math import exp, log
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Call = Callable[[Tensor, Tensor], Any]
UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid", "tanh", "erf", "erfc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "atanh"),
    *("lgamma", "digamma", "erfinv", "sqrt", "rsqrt", "reciprocal"),
)
BINARY = ("pow", "atan2", "hypot", "nextafter", "fmod", "remainder", "floor_divide", "copysign")


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


def medians(call: Call, a: Tensor, b: Tensor, rounds: int) -> list[float]:
    """Seconds of eager, Inductor and ours."""
    torch._dynamo.reset()
    sides = [call, torch.compile(call), torch.compile(call, backend="tcw")]
    for side in sides:
        side(a, b)
        side(a, b)
    times: list[list[float]] = [[], [], []]
    for _ in range(rounds):
        for side, found in zip(sides, times, strict=True):
            began = time.perf_counter()
            side(a, b)
            found.append(time.perf_counter() - began)
    return [statistics.median(found) for found in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only")
    parser.add_argument("--dtype", choices=("float32", "float64"))
    parser.add_argument("--size", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=15)
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
                rows.append((name, dtype, *medians(call, a, b, given.rounds)))
    rows.sort(key=lambda row: row[3] / row[4])
    print(f"{'function':14} {'dtype':8} {'eager µs':>10} {'Inductor':>10} {'tcw':>10}"
          f" {'Inductor/tcw':>13} {'eager/tcw':>10}")  # fmt: skip
    for name, dtype, eager, inductor, ours in rows:
        print(f"{name:14} {dtype:8} {eager * 1e6:10.1f} {inductor * 1e6:10.1f} {ours * 1e6:10.1f}"
              f" {inductor / ours:13.2f} {eager / ours:10.2f}")  # fmt: skip
    for place, name in ((3, "Inductor"), (2, "eager")):
        mean = exp(sum(log(row[place] / row[4]) for row in rows) / len(rows))
        print(f"geometric mean of {name}'s time over ours: {mean:.2f}")


if __name__ == "__main__":
    main()
