"""What torch's profiler takes for each event that it writes, in a call as a user's.

In a loop over one operation it takes a quarter of what it takes in a model, where each operation
throws out of the nearest caches what the profiler needs next: the longer it works, the more. So it
is measured in a small model in two sizes, in rounds as those of a profile: the call under the
profiler, less the plain call, for each event. The user's call has no part in it: that its account
closes is no matter of course.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from math import log
from statistics import median

import torch
from torch import nn

from compiler.measure.account import difference, noise_of_medians
from compiler.measure.probes.device_clock import device_clock
from workbench.worker.inputs import InputSet
from workbench.worker.profiling_rounds import (
    Contender,
    Lap,
    Laps,
    Looked,
    Rounds,
    Side,
    quiet_rounds,
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
    found = sorted(point(quiet_rounds(rounds.laps)[side]) for side in sizes)
    return EventCost(
        tuple((between, each) for between, each, _ in found), max(noise for *_, noise in found)
    )


def point(laps: Laps) -> tuple[float, float, float]:
    """(Seconds from event to event of the plain call, what each event adds, what is noise of
    that), from the medians of each round: its calls share what disturbs it."""
    events = max(1, laps["probed"][0].events)
    by_round = [_rows(laps[way]) for way in ("plain", "probed")]
    both = by_round[0].keys() & by_round[1].keys()
    if len(both) < 3:  # the quiet runs are of other rounds: as they come
        count = min(len(rows) for rows in by_round)
        plain, watched = (list(rows.values())[:count] for rows in by_round)
    else:
        plain, watched = ([rows[number] for number in sorted(both)] for rows in by_round)
    added, _ = difference(plain, watched)
    noise = noise_of_medians(plain, watched, len(plain))
    return median(plain) / events, max(0.0, added) / events, noise / events


def _rows(laps: Sequence[Lap]) -> dict[int, float]:
    """By round."""
    by_round = groupby(laps, key=lambda lap: lap.round)
    return {number: median(lap.seconds for lap in of_round) for number, of_round in by_round}


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
