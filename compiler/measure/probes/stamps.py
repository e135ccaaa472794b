"""Timestamps that a graph's Python takes around its steps, and their evaluation after the call.

While the call runs, only `STAMP(NOW())` is executed, both of which are C functions. Computing
anything from the times would cost time in the call and evict data that it needs next from the
caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import pairwise
from statistics import median
from time import perf_counter_ns
from typing import Any, TypeVar

from tcw.compiler.measure.probes.clock import Clock, Reading, Told

STAMP, NOW = "_stamp", "_now"
"""Names that the graph's Python calls."""
NOTE = f"{STAMP}({NOW}())"
"""The statement."""
EMPTY_STEPS = 101
"""The number of empty steps in the code from which `cost_of` computes the overhead."""
_TRIES = 9

Boxed = Callable[[list[Any]], Any]
N = TypeVar("N")

Spans = Iterable[tuple[int, int, int]]
"""(key, start, nanoseconds)."""


def told(base: int, begun: int, ended: int, steps: Spans, cost: int) -> Told:
    """The readings, and the overhead, of a graph that ran from `begun` to `ended`, as key `base`,
    and of its steps. `cost`: what all their clocks added to its time."""
    found = [Reading(base, begun, max(0, ended - begun - cost))]
    return found + [Reading(*step) for step in sorted(steps, key=lambda step: step[1])], cost


def noting(
    call: Boxed,
    clock: Clock,
    base: int,
    clear: Callable[[], None],
    notes: Callable[[], N],
    read: Callable[[N], tuple[Spans, int]],
) -> Boxed:
    """A graph's call, timed as key `base`, whose own code notes its steps.

    `clear` drops the notes of an earlier run, `notes` returns those of this one, and `read` turns
    them into the steps and the overhead, once the call is over.
    """

    def timed(arguments: list[Any]) -> Any:
        entered = perf_counter_ns()
        clear()
        begun = perf_counter_ns()
        try:
            return call(arguments)
        finally:
            ended = perf_counter_ns()
            clock.later(partial(later, begun, ended, notes()))
            clock.took(perf_counter_ns() - ended + begun - entered)

    def later(begun: int, ended: int, noted: N) -> Told:
        return told(base, begun, ended, *read(noted))

    return timed


def stamped(keys: Sequence[int], times: Sequence[int]) -> tuple[list[tuple[int, int, int]], int]:
    """The steps of `times`, two for each key in order, and the overhead of the stamps."""
    own, pair = cost_of_stamps()
    steps = [
        (key, start, max(0, end - start - own))
        for key, start, end in zip(keys, times[::2], times[1::2], strict=False)
    ]
    return steps, pair * len(steps)


@cache
def cost_of_stamps() -> tuple[int, int]:
    """(nanoseconds between two stamps with nothing in between, from one pair to the next)."""
    stamps: list[int] = []
    names: dict[str, Any] = {STAMP: stamps.append, NOW: perf_counter_ns}
    exec("def run():\n" + f"    {NOTE}\n" * (2 * EMPTY_STEPS), names)

    def pairs() -> list[tuple[int, int]]:
        stamps.clear()
        names["run"]()
        return list(zip(stamps[::2], stamps[1::2], strict=True))

    return cost_of(pairs)


def cost_of(run: Callable[[], Sequence[tuple[int, int]]]) -> tuple[int, int]:
    """The overhead per step, from the (start, end) of empty steps that `run` returns: (nanoseconds
    from a start to its end, from one start to the next)."""
    own, pair = [], []
    for _ in range(_TRIES):  # the least of several: other programs can only add time
        taken = run()
        own.append(median(end - start for start, end in taken))
        pair.append(median(later[0] - one[0] for one, later in pairwise(taken)))
    return int(min(own)), int(min(pair))
