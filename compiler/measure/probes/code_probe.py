"""The probe of a graph whose code is Python: compiled again with instrumentation.

While the call runs, the code only notes marks: `MARK((number, NOW()))`, of C functions. They are
evaluated after the call. Computing anything from the times would cost time in the call and evict
data that it needs next from the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, cached_property, partial
from itertools import pairwise
from statistics import median
from time import perf_counter_ns
from types import CodeType, MethodType
from typing import Any

import torch

from tcw.compiler.measure.compiled.alone import Boxed, CompiledGraph, NotAlone
from tcw.compiler.measure.probes import wrapper_code
from tcw.compiler.measure.probes.clock import Clock, HostClock, LateReadings, Reading, timed_by
from tcw.compiler.measure.probes.steps import GraphStep, See
from tcw.compiler.measure.probes.wrapper_code import ResultName, WrapperCode

Mark = tuple[int, int]
"""(1 + index of a step that starts, or its negative for a step that stops; the time)."""
Spans = Iterable[tuple[int, int, int]]
"""(key, start, nanoseconds)."""

_EMPTY_STEPS = 101
"""The number of empty steps in the code from which the overhead is computed."""
_TRIES = 9


class CodeProbe:
    """Which Python it is, and what its steps are, a subclass says."""

    def __init__(self, graph: str, live: CompiledGraph) -> None:
        self.graph = graph
        self.unmeasured = ""
        """Why its steps are not timed; known once they were requested."""
        self._live = live
        self._made: dict[str, Boxed] = {}
        """By the prefix of its functions."""

    @cached_property
    def code(self) -> WrapperCode:
        """The instrumented code; empty if there is none."""
        raise NotImplementedError

    @cached_property
    def names(self) -> dict[str, Any]:
        """The globals of the code."""
        raise NotImplementedError

    @property
    def steps(self) -> Sequence[GraphStep]:
        return self.code.steps

    @contextmanager
    def timing(self, clock: Clock, base: int) -> Iterator[None]:
        """See `CodeProbe`. If the code cannot be instrumented, the whole graph is timed."""
        call = self.function(self.code.timed, wrapper_code.TIMED) or self.uninstrumented()
        if isinstance(clock, HostClock):
            marks: list[Mark] = []
            cost_of_marks()  # measured now, not while a call is timed
            self.names[wrapper_code.MARK] = marks.append
            self.names[wrapper_code.NOW] = perf_counter_ns
            timed = self.noting(call, clock, base, marks)
        else:
            self.names[wrapper_code.MARK] = _marks_of(clock, base)
            self.names[wrapper_code.NOW] = int
            timed = self.ranged(timed_by(call, clock, base), clock, base)
        with self.instead(timed):
            yield

    @contextmanager
    def observing(self, see: See, before: See | None = None) -> Iterator[None]:
        """See `CodeProbe`.

        Raises `NotAlone` if the code cannot be instrumented. Parts of a step's result also appear
        under the names that the code gives them later. The graph propagates exceptions of `see`.
        """
        call = self.function(self.code.observed, wrapper_code.OBSERVED)
        if call is None:
            raise NotAlone(self.unmeasured)
        steps, results = self.steps, self.code.results

        def seen(index: int, variables: Mapping[str, Any]) -> None:
            see(steps[index], tensors_of(variables, results.get(index, ())))

        def begins(index: int, variables: Mapping[str, Any]) -> None:
            self.begins(variables)
            if before is not None:
                before(steps[index], tensors_of(variables))

        self.names.update({wrapper_code.BEFORE: begins, wrapper_code.SEEN: seen})
        with self.instead(call):
            yield

    def function(self, code: CodeType | None, prefix: str) -> Boxed | None:
        """The instrumented `call`, with the signature of the original."""
        if code is None or prefix in self._made:
            return self._made.get(prefix)
        made: dict[str, Any] = {}
        exec(code, self.names, made)
        self.names.update(made)
        call: Boxed = next(iter(made.values()))
        if self.code.method:
            call = MethodType(call, getattr(self._live.generated, "__self__", None))
        self._made[prefix] = self.boxed(call)
        return self._made[prefix]

    def uninstrumented(self) -> Boxed:
        """The graph's code, to be timed as a whole."""
        return self._live.generated

    def boxed(self, call: Callable[..., Any]) -> Boxed:
        """The code's function as AOTAutograd calls it."""
        return call

    def begins(self, variables: Mapping[str, Any]) -> None:
        """A step of the observed code begins, with these arguments."""

    def noting(self, call: Boxed, clock: HostClock, base: int, marks: list[Mark]) -> Boxed:
        """The call, timed as key `base`, with its marks as readings."""
        return noting(call, clock, base, marks.clear, marks.copy, lambda marks: marked(base, marks))

    def ranged(self, timed: Boxed, clock: Clock, base: int) -> Boxed:
        """The call for a clock that takes no host times: a device clock, which reads ranges."""
        return timed

    def instead(self, call: Boxed) -> AbstractContextManager[None]:
        """Inside, AOTAutograd's calls of the graph go to `call`."""
        return self._live.replaced(call)


def noting(
    call: Boxed,
    clock: Clock,
    base: int,
    clear: Callable[[], None],
    notes: Callable[[], Any],
    read: Callable[[Any], tuple[Spans, int]],
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

    def later(begun: int, ended: int, noted: Any) -> LateReadings:
        return graph_readings(base, begun, ended, *read(noted))

    return timed


def graph_readings(base: int, begun: int, ended: int, steps: Spans, cost: int) -> LateReadings:
    """The readings, and the overhead, of a graph that ran from `begun` to `ended`, as key `base`,
    and of its steps. `cost`: what all their clocks added to its time."""
    found = [Reading(base, begun, max(0, ended - begun - cost))]
    return found + [Reading(*step) for step in sorted(steps, key=lambda step: step[1])], cost


def marked(base: int, marks: Sequence[Mark]) -> tuple[list[tuple[int, int, int]], int]:
    """The steps of a graph with key `base`, and the overhead of their marks."""
    own, pair = cost_of_marks()
    steps = [
        (base + 1 + index, start, max(0, end - start - own)) for index, start, end in spans(marks)
    ]
    return steps, pair * len(steps)


def spans(marks: Sequence[Mark]) -> list[tuple[int, int, int]]:
    """(index of a step, start, end), sorted by start; steps never stopped are left out."""
    found: list[tuple[int, int, int]] = []
    opened: list[Mark] = []
    for mark in marks:
        if mark[0] > 0:
            opened.append(mark)
            continue
        while opened:
            started, start = opened.pop()
            if started == -mark[0]:
                found.append((started - 1, start, mark[1]))
                break
    return sorted(found, key=lambda span: span[1])


@cache
def cost_of_marks() -> tuple[int, int]:
    """(nanoseconds between two marks with nothing in between, from one pair to the next), in code
    of the generated form: the least of several tries, since other programs can only add time."""
    marks: list[Mark] = []
    names: dict[str, Any] = {wrapper_code.MARK: marks.append, wrapper_code.NOW: perf_counter_ns}
    exec(wrapper_code.empty_steps(_EMPTY_STEPS), names)
    own, pair = [], []
    for _ in range(_TRIES):
        marks.clear()
        names["run"]()
        taken = spans(marks)
        own.append(median(end - start for _, start, end in taken))
        pair.append(median(later[1] - one[1] for one, later in pairwise(taken)))
    return int(min(own)), int(min(pair))


def _marks_of(clock: Clock, base: int) -> Callable[[Mark], None]:
    """Marks for a clock that cannot take host times."""
    start, stop = clock.start, clock.stop

    def mark(one: Mark) -> None:
        number, _ = one
        if number > 0:
            start(base + number)
        else:
            stop(base - number)

    return mark


def tensors_of(variables: Mapping[str, Any], results: Sequence[ResultName] = ()) -> dict[str, Any]:
    """Tensors among a function's variables, and in tuples and lists (`buf1[0]`); a part that is
    only named later also appears under that name."""
    found: dict[str, Any] = {}
    for name, value in variables.items():
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, list | tuple):
            for place, item in enumerate(value):
                if isinstance(item, torch.Tensor):
                    found[f"{name}[{place}]"] = item
    for result in results:
        value = variables.get(result.source)
        for place in result.path:
            in_it = isinstance(value, list | tuple) and place < len(value)
            value = value[place] if in_it else None  # type: ignore[index]
        if isinstance(value, torch.Tensor):
            found[result.name] = value
    return found
