"""What torch's profiler takes for each event that it writes, in a call as a user's.

In a loop over one operation it takes a quarter of what it takes in a model, where each operation
throws out of the nearest caches what the profiler needs next: the longer it works, the more. So it
is measured in a small model in two sizes, in rounds as those of a profile: the call under the
profiler, less the plain call, for each event. The user's call has no part in it: that its account
closes is no matter of course.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import log
from statistics import median

import torch
from torch import nn

from compiler.measure.account import noise_of_medians
from compiler.measure.probes.device_clock import device_clock
from workbench.worker.inputs import InputSet
from workbench.worker.profiling_rounds import (
    Contender,
    Laps,
    Looked,
    Rounds,
    Side,
    quiet_laps,
)
from workbench.worker.runs import PreparedRun, RandomState, prepare

_ROUNDS, _SECONDS = 12, 1.5
_SMALL, _LARGE = (64, 16, 2), (128, 128, 1)
"""Width, tokens, blocks: less than a microsecond from event to event, and some."""


class _Block(nn.Module):  # type: ignore[misc]
    """An attention and its feed-forward: operations of some microseconds, and views."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.size = width // 4
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.up = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        q, k, v = (
            one(h).view(2, -1, 4, self.size).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        mixed = torch.softmax(q @ k.transpose(-2, -1) * 0.25, -1) @ v
        x = x + mixed.transpose(1, 2).reshape(x.shape)
        return x + torch.nn.functional.gelu(self.up(x))


@dataclass(frozen=True)
class EventCost:
    """Seconds for each event, by how long the call works from one event to the next."""

    points: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    """(seconds from event to event of the plain call, seconds that each adds to it), rising."""
    noise: float = 0.0
    """Seconds that it may be off by chance."""

    def __call__(self, between: float) -> float:
        """Between the points along the logarithm of the time; beyond them as at the next one."""
        (first, least), (last, most) = self.points[0], self.points[-1]
        if between <= first:
            return least
        if between >= last:
            return most
        return least + (most - least) * log(between / first) / log(last / first)


@cache
def event_cost() -> EventCost:
    """While the profiler watches the host alone; measured once in a process."""
    state = RandomState.now()
    sizes: dict[Side, tuple[int, int, int]] = {"eager": _SMALL, "compiled": _LARGE}
    try:
        torch.manual_seed(0)
        rounds = Rounds({side: _contender(*size) for side, size in sizes.items()})
        rounds.warm_up()
        rounds.run(_ROUNDS, _SECONDS)
    finally:
        state.restore()
    found = sorted(point(rounds.laps[side]) for side in sizes)
    return EventCost(
        tuple((between, each) for between, each, _ in found), max(noise for *_, noise in found)
    )


def point(laps: Laps) -> tuple[float, float, float]:
    """(Seconds from event to event of the plain call, what each event adds, what that may be off by
    chance), of the undisturbed calls."""
    quiet = quiet_laps(laps)
    events = max(1, quiet["probed"][0].events)
    plain, watched = ([lap.seconds for lap in quiet[way]] for way in ("plain", "probed"))
    rounds = min(len({lap.round for lap in of_way}) for of_way in quiet.values())
    noise = noise_of_medians(plain, watched, rounds)
    added = max(0.0, median(watched) - median(plain))
    return median(plain) / events, added / events, noise / events


def _contender(width: int, tokens: int, blocks: int) -> Contender:
    model = nn.Sequential(*(_Block(width) for _ in range(blocks))).eval()
    inputs = InputSet((torch.randn(2, tokens, width),))
    return Contender(
        lambda: prepare(model, inputs, "no-grad"), PreparedRun.pieces, {"probed": _watched}
    )


@contextmanager
def _watched() -> Iterator[Looked]:
    with device_clock(device=False) as clock:
        yield Looked(profile=clock)
