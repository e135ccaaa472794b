"""Errors of elementary functions in ulp, against higher precision: ours, eager's and Inductor's.

    python benchmarks/accuracy.py [--only NAMES] [--dtype float32] [--stride 1] [--samples 4000]
                                  [--jobs 14] [--minutes 4] [--reference cuda] [--sides tcw]

float32, one argument: all 2^32 values (`--stride 64`: every 64th bit pattern), against torch's
float64 function. Two arguments: random bit patterns, half of them near each other, against float64.
float64: `--samples` random arguments, a third of them bit patterns, against mpmath with 60 digits.
An ulp is the distance of floats at the true result, at least the smallest denormal. `special`
counts results that are NaN where the true one is not, or the reverse.

A stride of 1 takes up to half an hour a function, most of it for the reference; `--reference cuda`
computes that, and the comparison, on a GPU (the sides stay on the CPU): one to five minutes.
`--minutes` ends each after that time, with the number of values that were compared in its row
(blocks come in random order).
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.backend import backend
from benchmarks.functions import BINARY, UNARY, binary, unary

BLOCK = 1 << 18
"""Arguments of one call: what is computed of them stays in the caches."""
BLOCKS = {"cpu": 1, "cuda": 64}
"""Of how many calls the results are compared at once, by the device that compares."""
PAIRS = 1 << 24
"""Pairs of arguments of a function of two."""
SIDES = ("tcw", "eager", "inductor")
EXACT = ("pow", "fmod", "remainder", "floor_divide", "copysign")
"""Of the functions of two arguments, those whose float64 result is no reference for float32 (they
are discontinuous, or about neighbours), except `pow`, whose float64 result is."""
MANTISSA = {torch.float32: (23, -126)}
"""Bits of the mantissa, and the least normal exponent."""

Sample = tuple[Tensor, ...]


@dataclass
class Worst:
    """The largest error of one side so far."""

    ulp: float = 0.0
    where: tuple[float, ...] = ()
    special: int = 0
    above_one: int = 0


@dataclass
class Row:
    name: str
    dtype: torch.dtype
    count: int = 0
    sides: dict[str, Worst] = field(default_factory=dict)

    def add(self, arguments: Sample, results: dict[str, Tensor], true: Tensor) -> None:
        """Compare each side's results of a block with the true ones, which are float64."""
        bits, least = MANTISSA[self.dtype]
        for side, result in results.items():
            worst = self.sides.setdefault(side, Worst())
            compare = _compared if result.is_cuda else FUSED
            special, above, largest = compare(result, true, bits, least)
            worst.special += int(special)
            worst.above_one += int(above)
            if float(largest) > worst.ulp:
                worst.ulp = float(largest)
                place = int(errors(result, true, bits, least).argmax())
                worst.where = tuple(float(argument[place]) for argument in arguments)


def errors(found: Tensor, true: Tensor, bits: int, least: int) -> Tensor:
    """Of each result, in ulp; 0 where one of the two is NaN."""
    exponent = (((true.view(torch.int64) >> 52) & 0x7FF) - 1023).clamp(least, -least + 1)
    ulps = ((bits - exponent + 1023) << 52).view(torch.float64)
    limit = 2.0 ** (-least + 2)
    found = found.double()
    error = (found.clamp(-limit, limit) - true.clamp(-limit, limit)).abs() * ulps
    # infinities: equal ones have no difference
    return torch.where((found == true) | error.isnan(), 0.0, error)


def _compared(found: Tensor, true: Tensor, bits: int, least: int) -> Sample:
    """How many are NaN on one side alone; how many are off by more than an ulp; the worst."""
    error = errors(found, true, bits, least)
    return (found.isnan() != true.isnan()).sum(), (error > 1).sum(), error.amax()


FUSED = torch.compile(_compared, dynamic=False)
"""By Inductor, since on the CPU this takes longer than the functions themselves otherwise."""


def patterns(stride: int) -> Iterator[Sample]:
    """Every `stride`-th float32, in blocks, whose order is random: the first ones are a sample."""
    starts = list(range(-(1 << 31), 1 << 31, BLOCK * stride))
    random.Random(0).shuffle(starts)
    for begin in starts:
        end = min(begin + BLOCK * stride, 1 << 31)
        bits = torch.arange(begin, end, stride, dtype=torch.int64)
        yield (bits.to(torch.int32).view(torch.float32),)


def pairs(count: int) -> Iterator[Sample]:
    """Pairs of random float32 bit patterns; in every second block both are of like size."""
    chance = torch.Generator().manual_seed(0)
    for block in range(-(-count // BLOCK)):
        bits = torch.randint(-(1 << 31), 1 << 31, (2, BLOCK), generator=chance)
        one, other = bits.to(torch.int32).view(torch.float32)
        if block % 2:
            other = one * (torch.rand(BLOCK, generator=chance) * 8)
        yield one, other


def compiled(
    call: Callable[..., Any], arguments: int, chosen: Sequence[str]
) -> dict[str, Callable[..., Any]]:
    torch._dynamo.reset()
    every = {
        "tcw": torch.compile(call, backend=backend("tcw"), dynamic=False),
        "eager": call,
        "inductor": torch.compile(call, dynamic=False),
    }
    sides = {side: every[side] for side in chosen}
    if arguments == 2:
        return sides
    return {side: lambda a, f=f: f(a, a) for side, f in sides.items()}


def measured(name: str, call: Callable[..., Any], two: bool, given: argparse.Namespace) -> Row:
    """A row of float32, compared on the device `given.reference`. No block is begun after
    `given.minutes`."""
    until = time.monotonic() + 60 * given.minutes
    stride, reference = given.stride, given.reference
    row = Row(name, torch.float32)
    sides = compiled(call, 2 if two else 1, given.sides.split(","))
    every = pairs(PAIRS // stride if stride > 1 else PAIRS) if two else patterns(stride)
    while blocks := tuple(islice(every, BLOCKS[reference])):
        if row.count and time.monotonic() > until:
            break
        found = {
            side: torch.cat([function(*block) for block in blocks]).to(reference)
            for side, function in sides.items()
        }
        arguments = tuple(torch.cat(column).to(reference) for column in zip(*blocks, strict=True))
        wide = tuple(argument.double() for argument in arguments)
        true = call(*wide) if two else call(wide[0], wide[0])
        row.count += len(true)
        row.add(arguments, found, true)
    return row


def sampled(name: str, call: Callable[..., Any], given: argparse.Namespace) -> Row | None:
    """A row of float64, one argument; None if mpmath has no such function."""
    import mpmath

    mpmath.mp.dps = 60
    reference = _in_mpmath(name, mpmath)
    if reference is None:
        return None
    chance = torch.Generator().manual_seed(0)
    samples, third = given.samples, given.samples // 3
    bits = torch.randint(-(1 << 63), (1 << 63) - 1, (third,), generator=chance)
    spread = torch.randn(third, generator=chance, dtype=torch.float64) * 3
    near = torch.rand(samples - 2 * third, generator=chance, dtype=torch.float64) * 2 - 1
    x = torch.cat([bits.view(torch.float64), spread, near])
    eager = call(x, x)
    normal = x.isfinite() & eager.isfinite() & (x.abs() < 1e15)
    x = x[normal]
    row = Row(name, torch.float64, len(x))
    exact = [-reference(mpmath.mpf(float(one))) for one in x]
    for side, function in compiled(call, 1, given.sides.split(",")).items():
        found = function(x)
        worst = row.sides.setdefault(side, Worst())
        for one, got, true in zip(x.tolist(), found.tolist(), exact, strict=True):
            if got != got:
                worst.special += 1
                continue
            exponent = max(int(mpmath.mag(true)) - 1, -1022) if true else -1022
            error = float(abs(mpmath.mpf(got) - true) / mpmath.ldexp(1, exponent - 52))
            worst.above_one += error > 1
            if error > worst.ulp:
                worst.ulp, worst.where = error, (one,)
    return row


def _in_mpmath(name: str, mp: Any) -> Callable[[Any], Any] | None:
    special: dict[str, Callable[[Any], Any]] = {
        "exp2": lambda x: mp.power(2, x),
        "log2": lambda x: mp.log(x, 2),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "rsqrt": lambda x: 1 / mp.sqrt(x),
        "reciprocal": lambda x: 1 / x,
    }
    return special.get(name) or getattr(mp, name, None)


def line(row: Row) -> str:
    cells = []
    for side in SIDES:
        worst = row.sides.get(side)
        if worst is None:
            cells.append("–")
            continue
        special = f", {worst.special:,} special" if worst.special else ""
        size = f"{worst.ulp:,.2f}" if worst.ulp < 1e18 else f"{worst.ulp:.3g}"
        cells.append(f"{size}{special}")
    ours = row.sides.get("tcw", Worst())
    where = ", ".join(f"{one:.9g}" for one in ours.where) or "–"
    kind = str(row.dtype).removeprefix("torch.")
    above = f"{ours.above_one / row.count:.2%}"
    return f"| {row.name} | {kind} | {row.count:,} | {' | '.join(cells)} | {above} | {where} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="these functions, comma-separated")
    parser.add_argument("--dtype", choices=("float32", "float64"))
    parser.add_argument("--stride", type=int, default=1, help="of the float32 bit patterns")
    parser.add_argument("--samples", type=int, default=4000, help="arguments in float64")
    parser.add_argument("--jobs", type=int, default=1, help="functions at a time")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="for each function in float32"
    )
    parser.add_argument(
        "--reference", choices=tuple(BLOCKS), default="cpu", help="what computes float64"
    )
    parser.add_argument("--sides", default=",".join(SIDES), help="comma-separated")
    given = parser.parse_args()
    torch.set_num_threads(1)
    names = [*UNARY, *(name for name in BINARY if name not in EXACT[1:])]
    if given.only is not None:
        names = [name for name in names if name in given.only.split(",")]
    if len(names) > 1:
        print("| function | dtype | values | tcw, ulp | eager | Inductor | ours above 1 ulp | at |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
    if given.jobs > 1:
        with ThreadPoolExecutor(given.jobs) as pool:
            for text in pool.map(_in_a_process, names):
                print(text, end="", flush=True)
        return
    for name in names:
        two = name in BINARY
        call = partial(binary if two else unary, name)
        if given.dtype != "float64":
            print(line(measured(name, call, two, given)), flush=True)
        if given.dtype != "float32" and not two:
            row = sampled(name, call, given)
            if row is not None:
                print(line(row), flush=True)


def _in_a_process(name: str) -> str:
    """The lines of one function, measured by this program with the same arguments."""
    command = [sys.executable, *sys.argv, "--jobs", "1", "--only", name]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
