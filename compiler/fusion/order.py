"""The order in which nests and calls run: runs of nests stay together, nothing runs far too early.

List scheduling. A nest is taken before the next call when the graph had it before that call or when
it lets more bytes die than it makes; so a run of nests between two calls is as long as it can be
without keeping values alive for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(slots=True)
class Task:
    """Something to run."""

    place: int
    """Where the graph had it."""
    call: bool
    before: frozenset[int]
    """Indices of the tasks that it waits for."""
    saves: int = 0
    """Bytes of what it alone reads, less the bytes that it writes."""


def schedule(tasks: Sequence[Task]) -> list[int]:
    """Indices of the tasks in a legal order."""
    after: list[list[int]] = [[] for _ in tasks]
    waits = [len(task.before) for task in tasks]
    for index, task in enumerate(tasks):
        for earlier in sorted(task.before):
            after[earlier].append(index)
    keys = _keys(tasks, after, list(waits))
    nests: list[tuple[int, int]] = []
    calls: list[tuple[int, int]] = []
    for index, task in enumerate(tasks):
        if not waits[index]:
            heappush(calls if task.call else nests, (keys[index], index))
    order: list[int] = []
    while nests or calls:
        chosen = _next(tasks, nests, calls)
        order.append(chosen)
        for later in after[chosen]:
            waits[later] -= 1
            if not waits[later]:
                heappush(calls if tasks[later].call else nests, (keys[later], later))
    assert len(order) == len(tasks), "the groups wait for each other"
    return order


def _next(tasks: Sequence[Task], nests: list[tuple[int, int]], calls: list[tuple[int, int]]) -> int:
    if not calls or (nests and nests[0][0] < calls[0][0]):
        return heappop(nests)[1]
    for entry in sorted(nests):
        if tasks[entry[1]].saves >= 0:
            nests.remove(entry)
            nests.sort()
            return entry[1]
    return heappop(calls)[1]


def _keys(tasks: Sequence[Task], after: list[list[int]], waits: list[int]) -> list[int]:
    """The place of each task, or of the first that waits for it."""
    order = [index for index, count in enumerate(waits) if not count]
    for index in order:
        for later in after[index]:
            waits[later] -= 1
            if not waits[later]:
                order.append(later)
    assert len(order) == len(tasks), "the groups wait for each other"
    keys = [task.place for task in tasks]
    for index in reversed(order):
        keys[index] = min([keys[index], *(keys[later] for later in after[index])])
    return keys
