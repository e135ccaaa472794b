"""The execution order of nests and calls: keeps nests together and peak memory low.

List scheduling. Calls stay in graph order as far as possible. A nest runs when the next call
depends on it, or when it frees at least `SAVES` bytes more than it allocates. Nests that only
produce results come last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LATER = 1 << 60
SAVES = 32 << 10
"""Bytes that a nest must free to interrupt a run of calls."""


@dataclass(slots=True)
class Task:
    """A nest or call to schedule."""

    place: int
    """Its place in the graph."""
    call: bool
    before: tuple[int, ...]
    """Indices of the tasks that it depends on, without duplicates."""
    reads: tuple[str, ...] = ()
    """Memory of the program that it reads, without duplicates."""
    makes: int = 0
    """Bytes of new memory that it writes."""


def schedule(tasks: Sequence[Task], dying: Mapping[str, int]) -> list[int]:
    """Indices of the tasks in a legal order. `dying`: bytes of memory that may die, by name."""
    return _Schedule(tasks, dying).run()


class _Schedule:
    def __init__(self, tasks: Sequence[Task], dying: Mapping[str, int]) -> None:
        self.tasks = tasks
        self.dying = dying
        self.after: list[list[int]] = [[] for _ in tasks]
        for index, task in enumerate(tasks):
            for earlier in task.before:
                self.after[earlier].append(index)
        self.waits = [len(task.before) for task in tasks]
        self.readers: dict[str, int] = {}
        for task in tasks:
            for name in task.reads:
                self.readers[name] = self.readers.get(name, 0) + 1
        self.keys = self._keys()

    def run(self) -> list[int]:
        ready = [index for index, count in enumerate(self.waits) if not count]
        order: list[int] = []
        while ready:
            chosen = self._next(ready)
            ready.remove(chosen)
            order.append(chosen)
            for name in self.tasks[chosen].reads:
                self.readers[name] -= 1
            for later in self.after[chosen]:
                self.waits[later] -= 1
                if not self.waits[later]:
                    ready.append(later)
        assert len(order) == len(self.tasks), "the groups wait for each other"
        return order

    def _next(self, ready: list[int]) -> int:
        calls = [index for index in ready if self.tasks[index].call]
        nests = [index for index in ready if not self.tasks[index].call]
        call = min(calls, key=self._key, default=-1)
        if not nests:
            return call
        nest = min(nests, key=self._key)
        if call < 0 or self.keys[nest] < self.keys[call]:
            return nest
        saves = max(nests, key=lambda index: (self._saves(index), -self.tasks[index].place))
        return saves if self._saves(saves) >= SAVES else call

    def _key(self, index: int) -> tuple[int, int]:
        return self.keys[index], self.tasks[index].place

    def _saves(self, index: int) -> int:
        task = self.tasks[index]
        last = (self.dying.get(n, 0) for n in task.reads if self.readers[n] == 1)
        return sum(last) - task.makes

    def _keys(self) -> list[int]:
        """The earliest place of a call that depends on each task, or of the task, if it is one."""
        waits = list(self.waits)
        order = [index for index, count in enumerate(waits) if not count]
        for index in order:
            for later in self.after[index]:
                waits[later] -= 1
                if not waits[later]:
                    order.append(later)
        assert len(order) == len(self.tasks), "the groups wait for each other"
        keys = [task.place if task.call else LATER for task in self.tasks]
        for index in reversed(order):
            for later in self.after[index]:
                keys[index] = min(keys[index], keys[later])
        return keys
