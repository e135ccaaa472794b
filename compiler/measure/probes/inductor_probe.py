"""The probe of a graph that Inductor compiled: its generated wrapper, instrumented.

The wrapper is compiled again with the clock's functions in it (`wrapper_code`), into the globals of
the generated module, so it runs the same kernels. Line numbers are still those of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from time import perf_counter_ns
from types import CodeType, MethodType
from typing import Any, Protocol

import torch

from tcw.compiler.measure.compiled.alone import NotAlone
from tcw.compiler.measure.compiled.redirected import Boxed
from tcw.compiler.measure.probes import wrapper_code
from tcw.compiler.measure.probes.clock import Clock, HostClock, timed_by
from tcw.compiler.measure.probes.graph_probe import GraphStep, See
from tcw.compiler.measure.probes.stamps import EMPTY_STEPS, Spans, cost_of, noting
from tcw.compiler.measure.probes.wrapper_code import NoSteps, ResultName, WrapperCode

Mark = tuple[int, int]
"""(1 + index of a step that starts, or its negative for a step that stops; the time)."""


class LiveModule(Protocol):
    """What a probe needs of a generated module: see `measure.compiled.inductor_graphs`."""

    module: Any
    source: str
    generated: Boxed

    @property
    def kernels(self) -> Collection[str]: ...

    def replaced(self, run: Boxed) -> AbstractContextManager[None]: ...


class InductorProbe:
    """A `GraphProbe`. A partition that a CUDA graph replays is one step, `partition_0`.

    If a CUDA graph contains everything, including the wrapper, the wrapper does not run again, and
    there are no readings.
    """

    def __init__(self, graph: str, live: LiveModule) -> None:
        self.graph = graph
        self.unmeasured = ""
        """Why there are no steps; known once they were requested."""
        self._live = live
        self._code: WrapperCode | None = None
        self._made: dict[str, Boxed] = {}
        """By the prefix of its functions."""

    @property
    def steps(self) -> Sequence[GraphStep]:
        return self._instrumented().steps

    @contextmanager
    def timing(self, clock: Clock, base: int) -> Iterator[None]:
        """See `GraphProbe`. If the code cannot be instrumented, the whole graph is timed."""
        code = self._instrumented()
        call = self._function(code.timed, wrapper_code.TIMED) or self._live.generated
        names = vars(self._live.module)
        if isinstance(clock, HostClock):
            marks: list[Mark] = []
            names[wrapper_code.MARK], names[wrapper_code.NOW] = marks.append, perf_counter_ns
            timed = _marked(call, clock, base, marks)
        else:
            names[wrapper_code.MARK], names[wrapper_code.NOW] = _told(clock, base), int
            timed = timed_by(call, clock, base)
        with self._instead(timed):
            yield

    @contextmanager
    def observing(self, see: See, before: See | None = None) -> Iterator[None]:
        """See `GraphProbe`. `before` is called before each step in the same way.

        Raises `NotAlone` if the code cannot be instrumented. Parts of a step's result also appear
        under the names that the wrapper gives them later. The graph propagates exceptions of `see`.
        """
        code = self._instrumented()
        call = self._function(code.observed, wrapper_code.OBSERVED)
        if call is None:
            raise NotAlone(self.unmeasured)
        steps = code.steps

        def seen(index: int, variables: Mapping[str, Any]) -> None:
            see(steps[index], tensors_of(variables, code.results.get(index, ())))

        def begins(index: int, variables: Mapping[str, Any]) -> None:
            if before is not None:
                before(steps[index], tensors_of(variables))

        names = vars(self._live.module)
        names[wrapper_code.BEFORE], names[wrapper_code.SEEN] = begins, seen
        with self._instead(call):
            yield

    def _instrumented(self) -> WrapperCode:
        if self._code is None:
            module = self._live.module
            try:
                self._code = wrapper_code.instrumented(
                    self._live.source, module.__file__, self._live.kernels, self._replaced()
                )
            except (NoSteps, SyntaxError) as error:
                self.unmeasured = f"it was timed whole: {error}"
                self._code = WrapperCode()
        return self._code

    def _replaced(self) -> list[int]:
        """Partitions that do not run as generated, because torch put a CUDA graph around them."""
        runner = getattr(self._live.generated, "__self__", None)
        return [
            number
            for number, function in enumerate(getattr(runner, "partitions", ()))
            if function is not getattr(self._live.module, f"partition_{number}", None)
        ]

    def _function(self, code: CodeType | None, prefix: str) -> Boxed | None:
        """The instrumented `call`, with the signature of the original."""
        if code is None or prefix in self._made:
            return self._made.get(prefix)
        names = vars(self._live.module)
        made: dict[str, Any] = {}
        exec(code, names, made)
        names.update(made)
        call: Boxed = made[f"{prefix}call"]
        if self._code is not None and self._code.method:
            call = MethodType(call, getattr(self._live.generated, "__self__", None))
        self._made[prefix] = call
        return call

    def _instead(self, call: Boxed) -> AbstractContextManager[None]:
        if not torch.cuda.is_available():
            return self._live.replaced(call)

        def unless_captured(arguments: list[Any]) -> Any:
            # a CUDA graph replays what it captures: it must contain nothing but the graph
            captured = torch.cuda.is_current_stream_capturing()
            return (self._live.generated if captured else call)(arguments)

        return self._live.replaced(unless_captured)


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
    of the generated form."""
    marks: list[Mark] = []
    names: dict[str, Any] = {wrapper_code.MARK: marks.append, wrapper_code.NOW: perf_counter_ns}
    exec(wrapper_code.empty_steps(EMPTY_STEPS), names)

    def pairs() -> list[tuple[int, int]]:
        marks.clear()
        names["run"]()
        return [(start, end) for _, start, end in spans(marks)]

    return cost_of(pairs)


def _marked(call: Boxed, clock: Clock, base: int, marks: list[Mark]) -> Boxed:
    own, pair = cost_of_marks()

    def read(marks: Sequence[Mark]) -> tuple[Spans, int]:
        steps = [
            (base + 1 + index, start, max(0, end - start - own))
            for index, start, end in spans(marks)
        ]
        return steps, pair * len(steps)

    return noting(call, clock, base, marks.clear, marks.copy, read)


def _told(clock: Clock, base: int) -> Callable[[Mark], None]:
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
