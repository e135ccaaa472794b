"""The loop of every timing: warm-up, the order of a round, and when the rounds end."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

WARM_UPS = 2
FEWEST = 3
"""The number of rounds that are made even if `RoundsPlan.patience` is over."""


@dataclass(frozen=True)
class RoundsPlan:
    """How many rounds are made. Times are in seconds."""

    rounds: int
    """The wanted number of undisturbed rounds."""
    seconds: float = inf
    """Time budget of all rounds."""
    least: int = FEWEST
    """Rounds that are made even beyond the budget."""
    patience: float = inf
    """Seconds after which `FEWEST` rounds suffice."""
    extension: int = 1
    """At most this many times `rounds` are made if some are disturbed."""

    @property
    def most(self) -> int:
        return self.extension * self.rounds

    def ended(self, done: int, spent: float, undisturbed: Callable[[], int]) -> bool:
        """Whether `done` rounds in `spent` seconds are enough."""
        if done >= self.most:
            return True
        if done >= self.least and spent > self.seconds:
            return True
        if done >= FEWEST and spent > self.patience:
            return True
        return done >= self.rounds and undisturbed() >= self.rounds


def warm_up(runs: Iterable[T], make: Callable[[T], R], times: int = WARM_UPS) -> list[R]:
    """Make all runs this many times; returns the last results."""
    every = list(runs)
    for _ in range(times - 1):
        for one in every:
            make(one)
    return [make(one) for one in every]


def in_rounds(
    together: Sequence[Sequence[T]],
    make: Callable[[T, int, int], None],
    plan: RoundsPlan,
    *,
    in_a_row: Callable[[], int] = lambda: 1,
    undisturbed: Callable[[], int] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Make every run once per round, until the plan ends it; garbage collection is off.

    `together`: groups of runs that are compared. The order inside a group rotates from round to
    round, so that a drift of the machine affects all of them alike. `make(run, turn, count)` makes
    a run `count` times: `in_a_row` returns the number of rounds in one turn. `undisturbed` returns
    the number of rounds so far that no other program disturbed (by default all). `progress` is
    called with the number of rounds before each turn.
    """
    done = turn = 0
    undisturbed = undisturbed or (lambda: done)
    with no_collection():
        began = time.perf_counter()
        while not plan.ended(done, time.perf_counter() - began, undisturbed):
            progress(done)
            count = min(in_a_row(), plan.most - done)
            for runs in together:
                for one in turned(runs, turn):
                    make(one, turn, count)
            done, turn = done + count, turn + 1


def turned(runs: Sequence[T], turn: int) -> list[T]:
    """The order of a turn: in `2 * len(runs)` turns each run comes first twice, and it follows
    either neighbour equally often.

    >>> ["".join(turned("ab", turn)) for turn in range(4)]
    ['ab', 'ba', 'ba', 'ab']
    """
    place = turn // 2 % len(runs)
    found = [*runs[place:], *runs[:place]]
    return found[::-1] if turn % 2 else found


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect garbage first, and not inside the block."""
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
